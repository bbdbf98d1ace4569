-- API keys.

CREATE TABLE reclaim.access_keys (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  customer_id uuid NOT NULL,
  key_hash text NOT NULL UNIQUE, -- keyed; the key itself is shown once and stored nowhere
  prefix text NOT NULL DEFAULT '',
  name text NOT NULL DEFAULT '',
  created_at timestamptz NOT NULL DEFAULT now(),
  last_used_at timestamptz,
  revoked_at timestamptz,
  changed_xid xid8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX access_keys_customer_id_idx ON reclaim.access_keys (customer_id);
CREATE INDEX access_keys_revoked_idx ON reclaim.access_keys (changed_xid, id) WHERE revoked_at IS NOT NULL;

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA reclaim FROM PUBLIC;
