DROP TABLE reclaim.event_returns;
