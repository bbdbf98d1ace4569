ALTER TABLE reclaim.erasure_kept DROP COLUMN again;
ALTER TABLE reclaim.cascade_participants DROP COLUMN disabled_reason;
ALTER TABLE reclaim.column_decisions DROP COLUMN reason;
