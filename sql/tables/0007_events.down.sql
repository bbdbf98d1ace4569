DROP TABLE reclaim.event_returns;
DROP TABLE reclaim.event_outbox;
