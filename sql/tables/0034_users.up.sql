-- Where customers come from (RECLAIM_CUSTOMERS): rows of customer_customers alone, or every user of auth.users, whose row is made
-- when it is first needed. Written by `reclaim serve` when it starts, the latest start counts.
ALTER TABLE reclaim.installation
  ADD COLUMN customers text NOT NULL DEFAULT 'table' CHECK (customers IN ('table', 'users'));
