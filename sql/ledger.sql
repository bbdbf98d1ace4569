-- The schema and the list of migrations applied to it. Runs under the migration lock, before any migration; harmless
-- when repeated.
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
END
$$;
