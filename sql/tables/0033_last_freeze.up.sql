-- How many milliseconds after its last freeze each layer had it: the customer's row has the times while it is frozen only.
ALTER TABLE reclaim.customer_pending ADD COLUMN layers jsonb; -- of a freeze that ends
ALTER TABLE reclaim.customer_told ADD COLUMN last_freeze jsonb;
