-- The statements that take back the search path which earlier versions set for roles that are not Reclaim's own: this role
-- and the owner of schema reclaim, in this database. The next setting in precedence, if it says the same, counts again.
CREATE OR REPLACE FUNCTION reclaim.search_path_undo() RETURNS TABLE (role_name text, undo text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_role record;
  v_other text;
  v_kept text[];
BEGIN
  FOR v_role IN
    SELECT r.oid, r.rolname, substr(setting, length('search_path=') + 1) AS path FROM pg_roles r
    JOIN pg_db_role_setting s ON s.setrole = r.oid CROSS JOIN unnest(s.setconfig) AS setting
    WHERE s.setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database()) AND setting LIKE 'search\_path=%'
      AND (r.rolname = current_user OR r.oid = (SELECT nspowner FROM pg_namespace WHERE nspname = 'reclaim'))
      AND NOT reclaim.role_is_own(r.oid)
  LOOP
    v_kept := reclaim.path_names(v_role.path);
    CONTINUE WHEN v_kept[1] IS DISTINCT FROM 'reclaim';
    v_kept := array_remove(v_kept, 'reclaim');
    SELECT substr(setting, length('search_path=') + 1) INTO v_other
      FROM pg_db_role_setting s CROSS JOIN unnest(s.setconfig) AS setting
      WHERE setting LIKE 'search\_path=%' AND s.setrole IN (0, v_role.oid)
        AND s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
        AND (s.setrole = 0 OR s.setdatabase = 0)
      ORDER BY s.setrole <> 0 DESC, s.setdatabase <> 0 DESC LIMIT 1;
    role_name := v_role.rolname;
    undo := format('ALTER ROLE %I IN DATABASE %I %s', v_role.rolname, current_database(),
      CASE WHEN cardinality(v_kept) = 0 OR v_kept = reclaim.path_names(coalesce(v_other,
          (SELECT boot_val FROM pg_settings WHERE name = 'search_path')))
        THEN 'RESET search_path'
        ELSE 'SET search_path = ' || (SELECT string_agg(quote_literal(one), ', ' ORDER BY place)
          FROM unnest(v_kept) WITH ORDINALITY AS path (one, place)) END);
    RETURN NEXT;
  END LOOP;
END
$$;
REVOKE ALL ON FUNCTION reclaim.search_path_undo FROM PUBLIC;
