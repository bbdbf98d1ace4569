-- What one database knows of the installation that uses it: exactly one row.
CREATE TABLE reclaim.installation (
  key_fingerprint text, -- of RECLAIM_SECRET_KEY, written by the first instance that starts; another key is refused
  clock_shift interval NOT NULL DEFAULT '0', -- by which reclaim.now() is ahead of the real time
  demo boolean NOT NULL DEFAULT false,       -- served by `reclaim serve --demo`: without a provider mails go to the mailbox
  created_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);
CREATE UNIQUE INDEX installation_is_one_row ON reclaim.installation ((true));
INSERT INTO reclaim.installation DEFAULT VALUES;

-- Every step ends like this: default privileges of a schema cannot take back what others grant to PUBLIC.
REVOKE ALL ON SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA reclaim FROM PUBLIC;
