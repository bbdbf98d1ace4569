ALTER TABLE reclaim.event_returns DROP COLUMN reason;
