-- Whether a role is Reclaim's own: it owns nothing in this database outside schema reclaim, nor the database, and no other
-- role can act as it. In the private cluster, whose first role is called reclaim, everything is Reclaim's. A role that was
-- only given the right to administer this one, as PostgreSQL 16 gives it to who creates a role, does not act as it.
-- sql/search_path.sql asks the same of a database that has no functions yet.
CREATE OR REPLACE FUNCTION reclaim.role_is_own(p_role oid) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RETURN (SELECT r.oid = 10 AND r.rolname = 'reclaim' OR r.oid <> 10 AND NOT EXISTS (
        SELECT FROM pg_auth_members m WHERE m.roleid = r.oid AND (coalesce((to_jsonb(m) ->> 'set_option')::boolean, true)
          OR coalesce((to_jsonb(m) ->> 'inherit_option')::boolean, true)))
      AND NOT EXISTS (
        SELECT FROM pg_shdepend d CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, d.objsubid) o
        WHERE d.refclassid = 'pg_authid'::regclass AND d.refobjid = r.oid AND d.deptype = 'o'
          AND d.dbid IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
          AND coalesce(o.schema, CASE o.type WHEN 'schema' THEN o.name END, '') <> 'reclaim')
    FROM pg_roles r WHERE r.oid = p_role);
END
$$;
REVOKE ALL ON FUNCTION reclaim.role_is_own FROM PUBLIC;
