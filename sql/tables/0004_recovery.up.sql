-- Registration recovery: codes, of which only hashes are stored, and the log of requests.

-- Requests and their outcome. Addresses and clients are keyed hashes. A partition a month
-- (reclaim.make_audit_partitions); rows of any other time are in the default one.
CREATE TABLE reclaim.auth_cleanup_log (
  id bigint GENERATED ALWAYS AS IDENTITY,
  correlation_id uuid NOT NULL,
  email_hash text NOT NULL,
  ip_hash text,
  step text NOT NULL,
  status text NOT NULL CHECK (status IN ('pending', 'completed', 'failed')),
  error_code text,
  orphan_classification text,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (id, created_at)
) PARTITION BY RANGE (created_at);
CREATE TABLE reclaim.auth_cleanup_log_default PARTITION OF reclaim.auth_cleanup_log DEFAULT;
CREATE INDEX auth_cleanup_log_correlation_id_idx ON reclaim.auth_cleanup_log (correlation_id);
CREATE INDEX auth_cleanup_log_email_hash_idx ON reclaim.auth_cleanup_log (email_hash, created_at);
CREATE INDEX auth_cleanup_log_created_at_idx ON reclaim.auth_cleanup_log (created_at);

-- At most one code an address. The code itself follows from the salt, the user and a key that is not in here.
CREATE TABLE reclaim.verification_codes (
  email_hash text PRIMARY KEY,
  user_id uuid NOT NULL,
  code_hash bytea NOT NULL,
  code_salt bytea NOT NULL,
  expires_at timestamptz NOT NULL,
  tries integer NOT NULL DEFAULT 0,
  log_id bigint NOT NULL, -- of the row that the deletion completes
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX verification_codes_expires_at_idx ON reclaim.verification_codes (expires_at);

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA reclaim FROM PUBLIC;
