-- Whether the owner of customer_keep_owner may lock users; doctor asks too.
CREATE OR REPLACE FUNCTION reclaim.may_lock_users() RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RETURN coalesce(has_schema_privilege(to_regnamespace('auth'), 'USAGE')
    AND has_column_privilege(to_regclass('auth.users'), 'id', 'SELECT')
    AND has_any_column_privilege(to_regclass('auth.users'), 'UPDATE')
    AND reclaim.sees_all_rows(to_regclass('auth.users'), 'UPDATE'), false);
END
$$;
REVOKE ALL ON FUNCTION reclaim.may_lock_users FROM PUBLIC;
