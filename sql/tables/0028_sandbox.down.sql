ALTER TABLE reclaim.installation DROP COLUMN clock_moved_at, DROP COLUMN sandbox;
