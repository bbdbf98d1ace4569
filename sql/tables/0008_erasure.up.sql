-- A deleted customer is erased from every service that takes part, with a receipt from each.

-- Participants: tables of this database, and services elsewhere that report what they erased.
CREATE TABLE reclaim.cascade_participants (
  name text PRIMARY KEY CHECK (name ~ '^[a-z0-9][a-z0-9_.-]{0,62}$'),
  kind text NOT NULL CHECK (kind IN ('table', 'remote')),
  table_name text,                -- 'public.contacts', as format('%I.%I') writes it
  customer_column text,           -- uuid, text or varchar; an index starts with it
  soft_delete_column text,        -- gets the time of deletion; null: rows are deleted
  scrub_columns text[] NOT NULL DEFAULT '{}', -- emptied in rows that are deleted softly
  page_size integer NOT NULL DEFAULT 1000 CHECK (page_size BETWEEN 1 AND 100000),
  enabled boolean NOT NULL DEFAULT true,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- While the participant fails for every customer: how often in a row, and when it is tried again.
  tries integer NOT NULL DEFAULT 0,
  retry_at timestamptz NOT NULL DEFAULT '-infinity',
  CHECK ((kind = 'table') = (table_name IS NOT NULL)),
  CHECK ((table_name IS NULL) = (customer_column IS NULL)),
  CHECK (soft_delete_column IS NULL OR table_name IS NOT NULL)
);

-- A customer's erasure: finished when every participant has its receipt.
CREATE TABLE reclaim.erasures (
  customer_id uuid PRIMARY KEY,
  requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  completed_at timestamptz
);
CREATE INDEX erasures_open_idx ON reclaim.erasures (requested_at) WHERE completed_at IS NULL;

CREATE TABLE reclaim.cascade_receipts (
  customer_id uuid NOT NULL,
  participant text NOT NULL,
  status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'done', 'failed')), -- failed ones are tried again
  rows bigint NOT NULL DEFAULT 0, -- counted in the transaction that deletes them
  tries integer NOT NULL DEFAULT 0,
  next_try_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  first_tried_at timestamptz,
  last_tried_at timestamptz,
  done_at timestamptz,
  error text,                     -- PostgreSQL's code, or a service's words
  PRIMARY KEY (customer_id, participant),
  CHECK ((status = 'done') = (done_at IS NOT NULL))
);
CREATE INDEX cascade_receipts_open_idx ON reclaim.cascade_receipts (participant, next_try_at, customer_id)
  WHERE status <> 'done';

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA reclaim FROM PUBLIC;
