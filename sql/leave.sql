-- After the first step has been taken back: what sql/search_path.sql and sql/ledger.sql did. Runs under the
-- migration lock, with only pg_catalog on the path. Fails when the schema contains objects that are not Reclaim's.
DO $$
DECLARE
  ours text;
  others text;
  kept text[];
BEGIN
  -- Ours is the setting of this role in this database; without it the next in precedence would hold.
  SELECT max(substr(setting, length('search_path=') + 1)) FILTER (WHERE s.setrole <> 0 AND s.setdatabase <> 0),
      (array_agg(substr(setting, length('search_path=') + 1) ORDER BY s.setrole <> 0 DESC, s.setdatabase <> 0 DESC)
        FILTER (WHERE s.setrole = 0 OR s.setdatabase = 0))[1]
    INTO ours, others
    FROM pg_db_role_setting s CROSS JOIN unnest(s.setconfig) AS setting
    WHERE s.setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = current_user))
      AND s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
      AND setting LIKE 'search\_path=%';
  IF others IS NULL THEN
    SELECT boot_val INTO others FROM pg_settings WHERE name = 'search_path';
  END IF;

  -- A name is quoted, with quotes in it doubled, or else means its lower case.
  kept := ARRAY(
    SELECT coalesce(replace(part[1], '""', '"'), lower(part[2]))
    FROM regexp_matches(ours, '"((?:[^"]|"")*)"|([^",\s]+)', 'g') AS part);
  IF NOT 'reclaim' = ANY (kept) THEN
    RETURN;
  END IF;
  kept := array_remove(kept, 'reclaim');

  IF cardinality(kept) = 0 OR kept = array_remove(ARRAY(
      SELECT coalesce(replace(part[1], '""', '"'), lower(part[2]))
      FROM regexp_matches(others, '"((?:[^"]|"")*)"|([^",\s]+)', 'g') AS part), 'reclaim') THEN
    EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I RESET search_path', current_database());
  ELSE
    EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET search_path = %s', current_database(),
      (SELECT string_agg(quote_literal(name), ', ' ORDER BY place) FROM unnest(kept) WITH ORDINALITY AS path (name, place)));
  END IF;
EXCEPTION WHEN insufficient_privilege THEN
  NULL; -- then sql/search_path.sql could not set it either
END
$$;

DROP TABLE reclaim.schema_functions;
DROP TABLE reclaim.schema_migrations;
DROP SCHEMA reclaim;
