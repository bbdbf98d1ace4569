-- Proof of erasure: facts about receipts, the sealed log over all facts, and certificates.

ALTER TABLE reclaim.installation
  ADD COLUMN proof_generation integer NOT NULL DEFAULT 1 CHECK (proof_generation BETWEEN 1 AND 64); -- of the key that signs

-- What each receipt said when it was finished. Never changed: a participant that erased more later has another row.
CREATE TABLE reclaim.receipt_facts (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  customer_id uuid NOT NULL,
  participant text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('table', 'remote', 'storage', 'unknown')),
  status text NOT NULL CHECK (status IN ('done', 'kept')),
  rows bigint NOT NULL,
  late_rows bigint NOT NULL,
  first_tried_at timestamptz,
  done_at timestamptz,
  late_at timestamptz,
  reason text,                    -- of what is kept
  how text CHECK (how IN ('deleted', 'emptied', 'marked', 'reported', 'unknown')), -- what became of the rows; null: of what is kept
  reported_by text NOT NULL CHECK (reported_by IN ('reclaim', 'service', 'administrator', 'unknown')),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CHECK ((status = 'kept') = (how IS NULL))
);
CREATE INDEX receipt_facts_customer_id_idx ON reclaim.receipt_facts (customer_id, participant, id);
-- As far as it is known: of a participant that was removed it is not. What a rescan cleared in rows that Reclaim looks after itself
-- has the name of the table.
WITH own AS MATERIALIZED (
  SELECT format('%I.%I', n.nspname, c.relname) AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p'))
INSERT INTO reclaim.receipt_facts (customer_id, participant, kind, status, rows, late_rows, first_tried_at, done_at, late_at, reason, how,
    reported_by)
  SELECT r.customer_id, r.participant, CASE WHEN p.name IS NOT NULL THEN p.kind WHEN own.name IS NOT NULL THEN 'table' ELSE 'unknown' END,
    r.status, r.rows, r.late_rows, r.first_tried_at, r.done_at, r.late_at, CASE WHEN r.status = 'kept' THEN r.error END,
    CASE WHEN r.status = 'kept' THEN NULL WHEN p.name IS NULL THEN CASE WHEN own.name IS NOT NULL THEN 'emptied' ELSE 'unknown' END
      WHEN p.kind = 'remote' THEN 'reported' WHEN p.scrub_columns <> '{}' OR p.name LIKE 'reclaim.%' THEN 'emptied'
      WHEN p.soft_delete_column IS NOT NULL THEN 'marked' ELSE 'deleted' END,
    CASE WHEN p.kind = 'remote' THEN 'service' WHEN p.name IS NOT NULL OR own.name IS NOT NULL OR r.status = 'kept' THEN 'reclaim' ELSE 'unknown' END
  FROM reclaim.cascade_receipts r LEFT JOIN reclaim.cascade_participants p ON p.name = r.participant
    LEFT JOIN own ON own.name = r.participant
  WHERE r.status IN ('done', 'kept');
-- The release before did not look what is left in rows that it had marked.
INSERT INTO reclaim.erasure_kept (customer_id, name, kind, reason, rows)
  SELECT r.customer_id, p.table_name, 'table', 'its rows are marked as deleted and stay, with what they hold in columns that are not emptied', r.rows
  FROM reclaim.cascade_receipts r JOIN reclaim.cascade_participants p ON p.name = r.participant
  WHERE r.status = 'done' AND r.rows > 0 AND p.soft_delete_column IS NOT NULL AND NOT '*' = ANY (p.scrub_columns) AND p.name NOT LIKE 'reclaim.%'
  ON CONFLICT DO NOTHING;

-- One for each time that an erasure was completed.
CREATE TABLE reclaim.erasure_certificates (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  certificate_id uuid NOT NULL UNIQUE, -- its claim jti
  customer_id uuid NOT NULL,
  fact text NOT NULL,                  -- the claims that are sealed: src/erasure/certificate.h
  jws text NOT NULL,
  settled_at timestamptz NOT NULL,     -- of the erasure that it is about
  completed_at timestamptz NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX erasure_certificates_customer_id_idx ON reclaim.erasure_certificates (customer_id, id);

-- The leaves of the sealed log. They stay when retention removes the rows.
CREATE TABLE reclaim.sealed_leaves (
  position bigint PRIMARY KEY,
  source text NOT NULL,  -- customer, cleanup, receipt, certificate: which table (src/proof/sealed_log.c)
  fact_id bigint NOT NULL,
  hash bytea NOT NULL,
  UNIQUE (source, fact_id)
);
-- Its signed heads, each naming the one before.
CREATE TABLE reclaim.sealed_heads (
  size bigint PRIMARY KEY,
  frontier bytea NOT NULL, -- roots of the complete subtrees: what is needed to append
  jws text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- Rows up to floor are all sealed. Ids up to mark were given before the transaction mark_xid: once no older one runs, mark is the floor.
CREATE TABLE reclaim.sealed_sources (
  source text PRIMARY KEY,
  floor bigint NOT NULL DEFAULT 0,
  mark bigint NOT NULL DEFAULT 0,
  mark_xid xid8 NOT NULL DEFAULT '0',
  marked_at timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO reclaim.sealed_sources (source) VALUES ('customer'), ('cleanup'), ('receipt');

ALTER TABLE reclaim.erasures
  ADD COLUMN settled_at timestamptz,    -- when the last receipt was there; complete is said when it is proved
  ADD COLUMN certificate_id uuid,       -- of the erasure as it is complete now
  ADD COLUMN address_hash text,         -- SHA-256 of a salt, which stands in the last mail only, and the address; hex
  ADD COLUMN link_hash text;            -- SHA-256 of the secret in the link of the last mail; hex
UPDATE reclaim.erasures SET settled_at = completed_at WHERE completed_at IS NOT NULL;
CREATE INDEX erasures_settled_idx ON reclaim.erasures (settled_at) WHERE settled_at IS NOT NULL AND certificate_id IS NULL;

-- Replaced by a function with more arguments.
DROP FUNCTION IF EXISTS reclaim.cascade_receive(uuid, text, boolean, bigint, text);

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA reclaim FROM PUBLIC;
