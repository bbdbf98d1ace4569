-- Work that must still be done once its transaction has committed, and the mailbox of demonstrations.

CREATE TABLE reclaim.work_items (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind text NOT NULL,
  -- Ids and salts from which an instance that has the key finds out the rest: never an address, never a code.
  payload jsonb NOT NULL,
  -- Items that are done are deleted. Dead: failed too often, kept for operators.
  state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'dead')),
  due_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Until then only the process that drew this number works on it.
  leased_until timestamptz,
  leased_by bigint,
  tries integer NOT NULL DEFAULT 0,
  last_error text,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CHECK ((leased_until IS NULL) = (leased_by IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- When an item may next be claimed: once it is due, or once the lease of its process has run out.
CREATE INDEX work_items_ready_idx ON reclaim.work_items ((coalesce(leased_until, due_at))) WHERE state = 'open';
CREATE INDEX work_items_dead_idx ON reclaim.work_items (kind, id) WHERE state = 'dead';

-- Where mails go when no provider is set, which only demonstrations and the private cluster allow. It holds addresses
-- and codes in clear, so it is a table of its own, keeps the newest 200 and is empty after a crash.
CREATE UNLOGGED TABLE reclaim.mailbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  recipient text NOT NULL,
  subject text NOT NULL,
  body_text text NOT NULL,
  body_html text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA reclaim FROM PUBLIC;
