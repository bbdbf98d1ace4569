-- Why an operator deleted an orphaned account, beside its row of reclaim.auth_cleanup_log. The reason is free text and may
-- name people: it can be cleared without changing the fact.
CREATE TABLE reclaim.auth_cleanup_reasons (
  log_id bigint PRIMARY KEY,
  actor text NOT NULL,
  reason text CHECK (octet_length(reason) <= 1000),
  created_at timestamptz NOT NULL DEFAULT now() -- of the row in the log, too
);
CREATE INDEX auth_cleanup_reasons_created_at_idx ON reclaim.auth_cleanup_reasons (created_at);
REVOKE ALL ON reclaim.auth_cleanup_reasons FROM PUBLIC;
