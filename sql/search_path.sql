-- Puts schema reclaim before public for the role that migrates, if it is Reclaim's own, and keeps the rest of what is
-- configured for it. New sessions see it. Runs under the migration lock, with only pg_catalog on the path; harmless when
-- repeated.
DO $$
DECLARE
  configured text;
  names text[];
BEGIN
  -- As reclaim.role_is_own(), which a new database lacks.
  IF NOT (SELECT r.oid = 10 AND r.rolname = 'reclaim' OR r.oid <> 10 AND NOT EXISTS (
        SELECT FROM pg_auth_members m WHERE m.roleid = r.oid AND (coalesce((to_jsonb(m) ->> 'set_option')::boolean, true)
          OR coalesce((to_jsonb(m) ->> 'inherit_option')::boolean, true)))
      AND NOT EXISTS (
        SELECT FROM pg_shdepend d CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, d.objsubid) o
        WHERE d.refclassid = 'pg_authid'::regclass AND d.refobjid = r.oid AND d.deptype = 'o'
          AND d.dbid IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
          AND coalesce(o.schema, CASE o.type WHEN 'schema' THEN o.name END, '') <> 'reclaim')
    FROM pg_roles r WHERE r.rolname = current_user) THEN
    RETURN;
  END IF;

  -- What a new session of this role in this database gets, in PostgreSQL's order of precedence.
  SELECT substr(setting, length('search_path=') + 1) INTO configured
    FROM pg_db_role_setting s CROSS JOIN unnest(s.setconfig) AS setting
    WHERE s.setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = current_user))
      AND s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
      AND setting LIKE 'search\_path=%'
    ORDER BY s.setrole <> 0 DESC, s.setdatabase <> 0 DESC
    LIMIT 1;
  IF configured IS NULL THEN
    SELECT reset_val INTO configured FROM pg_settings WHERE name = 'search_path';
  END IF;

  -- A name is quoted, with quotes in it doubled, or else means its lower case.
  names := ARRAY(
    SELECT coalesce(replace(part[1], '""', '"'), lower(part[2]))
    FROM regexp_matches(configured, '"((?:[^"]|"")*)"|([^",\s]+)', 'g') AS part);

  IF array_position(names, 'reclaim') < coalesce(array_position(names, 'public'), cardinality(names) + 1) THEN
    RETURN;
  END IF;
  EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET search_path = %s', current_database(),
    (SELECT string_agg(quote_literal(name), ', ' ORDER BY place)
     FROM unnest(ARRAY['reclaim'] || array_remove(names, 'reclaim')) WITH ORDINALITY AS path (name, place)));
EXCEPTION WHEN insufficient_privilege THEN
  NULL; -- for people at psql only; Reclaim itself qualifies every name
END
$$;
