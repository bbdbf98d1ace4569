-- Keys of programs: without a customer, limited to what their scope names. Any key may have an end; both kinds are rotated.

ALTER TABLE reclaim.access_keys
  ALTER COLUMN customer_id DROP NOT NULL,
  ADD COLUMN scope text NOT NULL DEFAULT 'customer',
  ADD COLUMN expires_at timestamptz CHECK (isfinite(expires_at)), -- real time; refused from then on
  ADD CONSTRAINT access_keys_scope_check CHECK (scope IN ('customer', 'admin', 'read', 'calls', 'billing')
    OR scope ~ '^receipts:[a-z0-9][a-z0-9_.-]{0,62}$'),
  ADD CONSTRAINT access_keys_customer_check CHECK ((scope = 'customer') = (customer_id IS NOT NULL));
CREATE INDEX access_keys_scoped_idx ON reclaim.access_keys (created_at, id) WHERE customer_id IS NULL;

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA reclaim FROM PUBLIC;
