ALTER TABLE reclaim.customer_told DROP COLUMN last_freeze;
ALTER TABLE reclaim.customer_pending DROP COLUMN layers;
