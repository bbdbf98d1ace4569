-- The statement after which reclaim.sees_all_rows says yes; null when it does already. A restrictive policy takes rows away
-- whatever others give, so that only BYPASSRLS helps, or another policy. Of a view with several tables, the first.
CREATE OR REPLACE FUNCTION reclaim.row_security_mend(p_table regclass, p_command text) RETURNS text
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog
AS $$
DECLARE
  v_home regclass;
  v_role pg_roles;
  v_name text;
BEGIN
  IF reclaim.sees_all_rows(p_table, p_command) THEN
    RETURN NULL;
  END IF;
  SELECT t.oid INTO v_home FROM pg_class v LEFT JOIN pg_rewrite w ON w.ev_class = v.oid
    LEFT JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid AND d.refclassid = 'pg_class'::regclass
    JOIN pg_class t ON t.oid = CASE v.relkind WHEN 'v' THEN d.refobjid ELSE v.oid END AND t.relkind <> 'v' AND t.relrowsecurity
    WHERE v.oid = p_table ORDER BY t.oid LIMIT 1;
  SELECT r.* INTO v_role FROM pg_class v JOIN pg_roles r ON CASE
      WHEN v.relkind = 'v' AND coalesce(lower(v.reloptions::text), '') !~ 'security_invoker=(true|on|yes|1)[,}]'
      THEN r.oid = v.relowner ELSE r.rolname = current_user END
    WHERE v.oid = p_table;
  IF EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = v_home AND NOT p.polpermissive
      AND (pg_get_expr(p.polqual, p.polrelid) <> 'true' OR pg_get_expr(p.polwithcheck, p.polrelid) <> 'true')
      AND EXISTS (SELECT FROM unnest(p.polroles) AS role WHERE role = 0 OR pg_has_role(v_role.oid, role, 'USAGE'))) THEN
    RETURN format('ALTER ROLE %I BYPASSRLS', v_role.rolname);
  END IF;
  v_name := v_role.rolname || CASE p_command WHEN 'SELECT' THEN '_reads' ELSE '_all' END;
  WHILE EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = v_home AND p.polname = v_name) LOOP
    v_name := v_name || '_2';
  END LOOP;
  RETURN format('CREATE POLICY %I ON %s FOR %s TO %I USING (true)', v_name, v_home,
    CASE p_command WHEN 'SELECT' THEN 'SELECT' ELSE 'ALL' END, v_role.rolname);
END
$$;
REVOKE ALL ON FUNCTION reclaim.row_security_mend FROM PUBLIC;
