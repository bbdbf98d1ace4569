-- Whether row security lets this role see every row of a table and use the command on every row. A role from which row
-- security hides rows gets no error: owners look like orphans, and an erasure finds nothing to erase.
--
-- Commands: SELECT, UPDATE (also for a row lock), DELETE, UPDATE DELETE, and ALL for those with INSERT. To change rows a
-- role must also see them. Policies count when they are for the role and for the command (pg_policy.polcmd has letters); only
-- the constant true is taken for "all rows". A view reads its tables as the view's owner, unless it says security_invoker.
-- Complete in itself, so that EXECUTE on it is enough.
CREATE OR REPLACE FUNCTION reclaim.sees_all_rows(p_table regclass, p_command text) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog
AS $$
DECLARE
  v_needed "char"[] := CASE p_command WHEN 'SELECT' THEN '{r}' WHEN 'UPDATE' THEN '{r,w}' WHEN 'DELETE' THEN '{r,d}'
    WHEN 'UPDATE DELETE' THEN '{r,w,d}' WHEN 'ALL' THEN '{r,a,w,d}' END;
BEGIN
  IF v_needed IS NULL THEN
    RAISE EXCEPTION 'sees_all_rows knows SELECT, UPDATE, DELETE, UPDATE DELETE and ALL, not %', p_command
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- The usual case, checked for every request: a table (a view has no file).
  IF pg_relation_filenode(p_table) IS NOT NULL AND NOT row_security_active(p_table) THEN
    RETURN true;
  END IF;
  RETURN NOT EXISTS (
    -- The tables whose policies count, and the role for which they do.
    WITH guarded AS (
      SELECT c.oid AS home, me.oid AS role FROM pg_class c JOIN pg_roles me ON me.rolname = current_user
      WHERE c.oid = p_table AND c.relkind <> 'v' AND row_security_active(c.oid)
      UNION
      SELECT t.oid, o.oid FROM pg_class v JOIN pg_rewrite w ON w.ev_class = v.oid
      JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid AND d.refclassid = 'pg_class'::regclass
      JOIN pg_class t ON t.oid = d.refobjid AND t.relkind IN ('r', 'p') AND t.relrowsecurity
      JOIN pg_roles o ON CASE WHEN lower(v.reloptions::text) ~ 'security_invoker=(true|on|yes|1)[,}]'
        THEN o.rolname = current_user ELSE o.oid = v.relowner END
      WHERE v.oid = p_table AND v.relkind = 'v' AND NOT o.rolsuper AND NOT o.rolbypassrls
        AND (t.relforcerowsecurity OR NOT pg_has_role(o.oid, t.relowner, 'USAGE'))),
    counting AS (
      SELECT g.home, p.polcmd, p.polpermissive, pg_get_expr(p.polqual, p.polrelid) AS seen,
        pg_get_expr(coalesce(p.polwithcheck, p.polqual), p.polrelid) AS written
      FROM guarded g JOIN pg_policy p ON p.polrelid = g.home AND EXISTS (
        SELECT FROM unnest(p.polroles) AS role WHERE role = 0 OR pg_has_role(g.role, role, 'USAGE')))
    SELECT FROM guarded g CROSS JOIN unnest(v_needed) AS needed
    CROSS JOIN LATERAL (
      SELECT coalesce(bool_or(polpermissive AND seen = 'true'), false)
          AND NOT coalesce(bool_or(NOT polpermissive AND seen <> 'true'), false) AS sees,
        coalesce(bool_or(polpermissive AND written = 'true'), false)
          AND NOT coalesce(bool_or(NOT polpermissive AND written <> 'true'), false) AS writes
      FROM counting WHERE counting.home = g.home AND polcmd IN (needed, '*')) may
    WHERE needed <> 'a' AND NOT may.sees OR needed IN ('a', 'w') AND NOT may.writes);
END
$$;
REVOKE ALL ON FUNCTION reclaim.sees_all_rows FROM PUBLIC;
