-- Whether row security lets this role see every row of a table and, for UPDATE and DELETE, change every row. A role from
-- which row security hides rows gets no error: owners look like orphans, and an erasure finds nothing to erase.
--
-- Policies count when they are for this role and for the command; to change rows a role must also see them. Only the
-- constant true is taken for "all rows". A view reads its tables as the view's owner.
CREATE OR REPLACE FUNCTION reclaim.sees_all_rows(p_table regclass, p_command text) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog
AS $$
DECLARE
  v_needed "char"[] := CASE p_command WHEN 'SELECT' THEN '{r}' WHEN 'UPDATE' THEN '{r,w}' WHEN 'DELETE' THEN '{r,d}' END;
BEGIN
  IF v_needed IS NULL THEN
    RAISE EXCEPTION 'sees_all_rows knows SELECT, UPDATE and DELETE, not %', p_command
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- The usual case, checked for every request: a table (a view has no file).
  IF pg_relation_filenode(p_table) IS NOT NULL AND NOT row_security_active(p_table) THEN
    RETURN true;
  END IF;
  IF EXISTS (SELECT FROM pg_class WHERE oid = p_table AND relkind = 'v') THEN
    RETURN NOT EXISTS (
      SELECT FROM pg_class v JOIN pg_roles o ON o.oid = v.relowner JOIN pg_rewrite w ON w.ev_class = v.oid
      JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid AND d.refclassid = 'pg_class'::regclass
      JOIN pg_class t ON t.oid = d.refobjid AND t.relkind IN ('r', 'p') AND t.relrowsecurity
      WHERE v.oid = p_table AND NOT o.rolsuper AND NOT o.rolbypassrls
        AND (t.relforcerowsecurity OR NOT pg_has_role(v.relowner, t.relowner, 'USAGE')));
  END IF;
  IF NOT row_security_active(p_table) THEN
    RETURN true;
  END IF;
  RETURN NOT EXISTS (
    WITH mine AS (
      SELECT p.polcmd, p.polpermissive, pg_get_expr(p.polqual, p.polrelid) AS seen,
        pg_get_expr(coalesce(p.polwithcheck, p.polqual), p.polrelid) AS written
      FROM pg_policy p WHERE p.polrelid = p_table AND EXISTS (
        SELECT FROM unnest(p.polroles) AS role WHERE role = 0 OR pg_has_role(role, 'USAGE')))
    SELECT FROM unnest(v_needed) AS needed
    WHERE NOT EXISTS (SELECT FROM mine WHERE polpermissive AND polcmd IN (needed, '*') AND seen = 'true')
      OR EXISTS (SELECT FROM mine WHERE NOT polpermissive AND polcmd IN (needed, '*') AND seen <> 'true')
      OR needed = 'w' AND (
        NOT EXISTS (SELECT FROM mine WHERE polpermissive AND polcmd IN ('w', '*') AND written = 'true')
        OR EXISTS (SELECT FROM mine WHERE NOT polpermissive AND polcmd IN ('w', '*') AND written <> 'true')));
END
$$;
REVOKE ALL ON FUNCTION reclaim.sees_all_rows FROM PUBLIC;
