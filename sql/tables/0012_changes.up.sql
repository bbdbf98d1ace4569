-- A change of a customer's state is complete whoever writes it: triggers on customer_customers (sql/triggers.sql) write
-- what follows from it, in the writer's transaction. This is what they need.

-- What the triggers and every instance must agree on; written by `reclaim serve` when it starts, the latest start counts.
ALTER TABLE reclaim.installation
  ADD COLUMN grace interval NOT NULL DEFAULT '30 days',
  ADD COLUMN mails boolean NOT NULL DEFAULT false, -- a provider or the mailbox is there: mails are queued
  ADD COLUMN expired_until timestamptz;            -- the last expiry pass that was completed had deleted all due by then

-- The database role of a change that another program wrote (actor: sql).
ALTER TABLE reclaim.customer_log ADD COLUMN actor_role text;

-- Whether the customer's own row and logins are cleared: an erasure is complete only then.
ALTER TABLE reclaim.erasures ADD COLUMN cleared boolean NOT NULL DEFAULT true;

-- What may become of a customer. The trigger and the program ask here; nothing else decides it.
CREATE TABLE reclaim.customer_transitions (
  status text NOT NULL,
  change text NOT NULL,  -- freeze, recover, delete
  outcome text NOT NULL CHECK (outcome IN ('changes', 'unchanged', 'refused')),
  next text NOT NULL,
  event text,            -- the type of the event that tells of it
  PRIMARY KEY (status, change)
);
INSERT INTO reclaim.customer_transitions VALUES
  ('active',  'freeze',  'changes',   'frozen',  'customer_frozen'),
  ('active',  'recover', 'refused',   'active',  NULL),
  ('active',  'delete',  'changes',   'deleted', 'customer_deleted'),
  ('frozen',  'freeze',  'unchanged', 'frozen',  NULL),
  ('frozen',  'recover', 'changes',   'active',  'customer_recovered'),
  ('frozen',  'delete',  'changes',   'deleted', 'customer_deleted'),
  ('deleted', 'freeze',  'refused',   'deleted', NULL),
  ('deleted', 'recover', 'refused',   'deleted', NULL),
  ('deleted', 'delete',  'unchanged', 'deleted', NULL);

-- Changes that a statement made and whose consequences are not written: the row trigger notes them, the statement trigger
-- takes those of its own transaction. A note that outlives its transaction was left by a writer whose statement triggers
-- do not fire (logical replication); the leader writes its consequences. Unlogged: such notes that a crash takes are found by
-- customer_told below.
CREATE UNLOGGED TABLE reclaim.customer_pending (
  id bigint GENERATED ALWAYS AS IDENTITY,
  xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  customer_id uuid NOT NULL,
  change text NOT NULL,          -- freeze, recover, delete; moved: the date of the deletion; insert: under an id that was used before; import: deleted already
  version bigint NOT NULL,
  removed boolean NOT NULL,      -- the row itself is gone
  owner_user_id uuid,            -- of a row that is gone
  object jsonb,                  -- of a row that is gone: the customer object without what is personal
  role text NOT NULL DEFAULT session_user,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (xid, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- The state that billing, calls, gates and consumers were last told of. A customer whose row says otherwise was changed
-- behind the triggers: `reclaim doctor` finds it. Rows stay after the customer's own is gone: its version goes on from
-- here if the id is used again.
CREATE TABLE reclaim.customer_told (
  customer_id uuid PRIMARY KEY,
  status text NOT NULL,
  version bigint NOT NULL,
  told_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 80);

-- What counts no more at any gate: each instance reads new rows as it reads freezes, and drops what it has cached.
CREATE TABLE reclaim.gate_ended (
  kind text NOT NULL CHECK (kind IN ('customer', 'key', 'user', 'session')),
  id uuid NOT NULL,
  changed_xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX gate_ended_by_change ON reclaim.gate_ended (changed_xid, id);
CREATE INDEX gate_ended_created_at_idx ON reclaim.gate_ended (created_at);

DO $$
DECLARE
  v_home regclass := (SELECT CASE relkind WHEN 'v' THEN to_regclass('public.customer_customers') ELSE oid::regclass END
    FROM pg_class WHERE oid = to_regclass('reclaim.customer_customers'));
  v_column text[];
  v_type text;
BEGIN
  FOREACH v_column SLICE 1 IN ARRAY ARRAY[
    ARRAY['deletion_effective_at', 'timestamp with time zone'], -- promised at the freeze
    ARRAY['frozen_by', 'text'],                                 -- owner, admin, sql
    ARRAY['freeze_reason', 'text']] LOOP
    SELECT format_type(atttypid, NULL) INTO v_type FROM pg_attribute
      WHERE attrelid = v_home AND attname = v_column[1] AND NOT attisdropped;
    IF v_type IS NULL THEN
      EXECUTE format('ALTER TABLE %s ADD COLUMN %I %s', v_home, v_column[1], v_column[2]);
      INSERT INTO reclaim.adopted_columns SELECT v_home::text, v_column[1] WHERE v_home::text NOT LIKE 'reclaim.%';
    ELSIF v_type <> v_column[2] THEN
      RAISE EXCEPTION '% has a column % of type %, Reclaim needs %', v_home, v_column[1], v_type, v_column[2]
        USING HINT = 'Rename the column, then migrate again.';
    END IF;
  END LOOP;
  IF v_home <> 'reclaim.customer_customers'::regclass THEN
    EXECUTE format('CREATE OR REPLACE VIEW reclaim.customer_customers AS SELECT * FROM %s', v_home);
  END IF;
  EXECUTE format('CREATE INDEX customer_by_effective_date ON %s (deletion_effective_at, id) WHERE status = ''frozen''', v_home);
  -- Nothing goes by the time of the freeze any more.
  EXECUTE (SELECT string_agg(format('DROP INDEX %s', indexrelid::regclass), ';') FROM pg_index
    WHERE indrelid = v_home AND indexrelid::regclass::text ~ 'customer_by_schedule$');
  EXECUTE format('CREATE INDEX customer_held ON %s (id) WHERE hold_at IS NOT NULL', v_home);
END
$$;

-- Reminders go by the stored date.
DROP FUNCTION IF EXISTS reclaim.remind(bigint, bigint, bigint, integer);

-- Freezes from before are told already; their dates follow with the first start, which knows the grace period.
INSERT INTO reclaim.customer_told (customer_id, status, version)
  SELECT id, status, version FROM reclaim.customer_customers WHERE status <> 'active';

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA reclaim FROM PUBLIC;
