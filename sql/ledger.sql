-- The schema, the list of steps applied to it, and which set of functions it has. Runs under the migration lock, before any
-- step; harmless when repeated.
DO $$
BEGIN
  -- Asked first: CREATE SCHEMA IF NOT EXISTS wants rights on the database even when the schema is there.
  IF pg_catalog.to_regnamespace('reclaim') IS NULL THEN
    CREATE SCHEMA reclaim;
    REVOKE ALL ON SCHEMA reclaim FROM PUBLIC;
  END IF;
  IF pg_catalog.to_regclass('reclaim.schema_migrations') IS NULL THEN
    CREATE TABLE reclaim.schema_migrations (
      version integer PRIMARY KEY CHECK (version > 0),
      name text NOT NULL,
      checksum text NOT NULL, -- SHA-256 of the up file, in hex
      applied_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
    );
    REVOKE ALL ON reclaim.schema_migrations FROM PUBLIC;
  END IF;
  IF pg_catalog.to_regclass('reclaim.schema_functions') IS NULL THEN
    CREATE TABLE reclaim.schema_functions (
      number integer NOT NULL CHECK (number > 0), -- of the set; a program with a lower one leaves the functions alone
      checksum text NOT NULL,                     -- SHA-256 of the set, in hex
      applied_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
    );
    CREATE UNIQUE INDEX schema_functions_is_one_row ON reclaim.schema_functions ((true));
    REVOKE ALL ON reclaim.schema_functions FROM PUBLIC;
  END IF;
END
$$;
