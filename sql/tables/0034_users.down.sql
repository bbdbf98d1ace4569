ALTER TABLE reclaim.installation DROP COLUMN customers;
