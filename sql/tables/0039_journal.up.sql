-- The journal's lines, as they are in its files outside the database (src/proof/journal.h), and what a restored database has to
-- do because of them.

ALTER TABLE reclaim.installation
  ADD COLUMN restored_at timestamptz,  -- a journal has lines that this database lacked, and they are not replayed yet
  ADD COLUMN journal_from timestamptz; -- lines up to then were removed: they are older than the backups

CREATE TABLE reclaim.journal_lines (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- in the order in which journals have them
  hash bytea NOT NULL UNIQUE,                         -- SHA-256 of the line
  line text NOT NULL,
  kind text NOT NULL,                                 -- erasure, head, restore
  imported boolean NOT NULL DEFAULT false,            -- came from a journal: this database lacked it
  lost boolean NOT NULL DEFAULT false,                -- and is not replayed yet
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX journal_lines_lost_idx ON reclaim.journal_lines (id) WHERE lost;
CREATE INDEX journal_lines_created_at_idx ON reclaim.journal_lines (created_at);

-- Customers and users that were erased before the restore: refused everywhere until they are erased again.
CREATE TABLE reclaim.erased_before (
  id uuid PRIMARY KEY
);

ALTER TABLE reclaim.erasures
  ADD COLUMN journal_hash bytea,                   -- of its line
  ADD COLUMN journaled boolean NOT NULL DEFAULT false, -- the line is on the disk of the instance that led
  ADD COLUMN keyed_address text;                   -- HMAC of the address under a key that the database does not have; hex
CREATE INDEX erasures_journal_idx ON reclaim.erasures (requested_at) WHERE journal_hash IS NULL;
CREATE INDEX erasures_journaled_idx ON reclaim.erasures (journal_hash) WHERE NOT journaled AND journal_hash IS NOT NULL;

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA reclaim FROM PUBLIC;
