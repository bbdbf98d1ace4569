-- The trail of registration recovery: what happened at each step.

-- Facts, added and never changed (reclaim.keep_event): a row for each step, one for what became of a mail, and one for the
-- refusals by one key within a minute. Addresses and networks are keyed hashes. A partition a month, as of the log.
CREATE TABLE reclaim.auth_cleanup_events (
  id bigint GENERATED ALWAYS AS IDENTITY,
  log_id bigint, -- the row of auth_cleanup_log: of the code that a step or mail is about, else of the refusal
  correlation_id uuid, -- the step's own; of counted refusals that of the first
  email_hash text,
  network_hash text,
  kind text NOT NULL CHECK (kind IN ('request-code', 'validate-and-cleanup', 'mail', 'refusals')),
  outcome text NOT NULL, -- of a step: code-sent, user-deleted or its error; of a mail: sent, failed, taken-over, …
  detail text, -- classification, provider, tier or a sentence; nothing personal
  sqlstate text, -- of a fault
  constraint_name text,
  count bigint NOT NULL DEFAULT 1 CHECK (count > 0),
  counted_from timestamptz, -- of counted refusals: the first; created_at is when the count was written
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (id, created_at)
) PARTITION BY RANGE (created_at);
CREATE TABLE reclaim.auth_cleanup_events_default PARTITION OF reclaim.auth_cleanup_events DEFAULT;
CREATE INDEX auth_cleanup_events_correlation_id_idx ON reclaim.auth_cleanup_events (correlation_id);
CREATE INDEX auth_cleanup_events_email_hash_idx ON reclaim.auth_cleanup_events (email_hash, created_at);
CREATE INDEX auth_cleanup_events_created_at_idx ON reclaim.auth_cleanup_events (created_at);

REVOKE ALL ON reclaim.auth_cleanup_events, reclaim.auth_cleanup_events_default FROM PUBLIC;
