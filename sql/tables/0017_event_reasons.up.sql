-- Why an event could not be delivered: no queue was bound for it, or it was too large.
ALTER TABLE reclaim.event_returns ADD COLUMN reason text NOT NULL DEFAULT 'no queue was bound for it';
