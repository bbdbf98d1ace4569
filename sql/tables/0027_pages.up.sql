-- What the operators' console shows and nothing else recorded.

-- The instances that use this database: each writes its row every few seconds, the leader deletes old ones.
CREATE TABLE reclaim.instances (
  id uuid PRIMARY KEY,          -- drawn at start
  name text NOT NULL,           -- host and public address
  version text NOT NULL,
  started_at timestamptz NOT NULL,
  seen_at timestamptz NOT NULL, -- real time
  gate_lag_ms bigint,           -- how old its set of frozen customers was; null: not read yet
  is_leader boolean NOT NULL
);

-- What became of each mail about a customer; neither its address nor its text. Kept as long as the audit.
CREATE TABLE reclaim.customer_mails (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  customer_id uuid NOT NULL,
  template text NOT NULL,
  outcome text NOT NULL, -- sent, failed, expired, unneeded
  detail text,           -- the provider, or a sentence
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX customer_mails_customer_id_idx ON reclaim.customer_mails (customer_id, created_at);
CREATE INDEX customer_mails_created_at_idx ON reclaim.customer_mails (created_at);

-- Who is signed in at the console. The key itself is in the browser's cookie, sealed; without this row it opens no page.
CREATE TABLE reclaim.console_sessions (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  key_id uuid,                  -- of reclaim.access_keys; null: an administrator's token
  scope text NOT NULL CHECK (scope IN ('admin', 'read')),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  ended_at timestamptz
);
CREATE INDEX console_sessions_key_id_idx ON reclaim.console_sessions (key_id) WHERE ended_at IS NULL;

REVOKE ALL ON reclaim.instances, reclaim.customer_mails, reclaim.console_sessions FROM PUBLIC;
