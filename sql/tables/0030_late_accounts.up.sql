-- What happens after a deletion, and how often customers are frozen, apart from the audit.

-- Customers to look at again at once: a billing account came after the erasure. Written by the team's own statements, which must
-- not wait for a lock: so there may be several of a customer.
CREATE TABLE reclaim.erasure_late (
  customer_id uuid NOT NULL,
  noted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The freezes of the last 30 days, for RECLAIM_FREEZE_LIMIT: in the installation's time, however long the audit is kept.
CREATE TABLE reclaim.customer_frozen (
  customer_id uuid NOT NULL,
  frozen_at timestamptz NOT NULL,
  by_owner boolean NOT NULL -- or with a key of the customer; else by an administrator or another program
);
CREATE INDEX customer_frozen_customer_id_idx ON reclaim.customer_frozen (customer_id, frozen_at);
CREATE INDEX customer_frozen_frozen_at_idx ON reclaim.customer_frozen (frozen_at);
INSERT INTO reclaim.customer_frozen (customer_id, frozen_at, by_owner)
  SELECT l.customer_id, l.created_at + i.clock_shift, l.actor IN ('owner', 'key') FROM reclaim.customer_log l CROSS JOIN reclaim.installation i
  WHERE l.created_at > clock_timestamp() - interval '720 hours' AND l.action = 'freeze' AND l.outcome = 'done' AND l.customer_id IS NOT NULL;

REVOKE ALL ON reclaim.erasure_late, reclaim.customer_frozen FROM PUBLIC;
