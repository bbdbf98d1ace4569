-- Whether a user has a verified second factor; null when that cannot be read; login is then refused. The
-- table is Supabase Auth's and may be missing.
CREATE OR REPLACE FUNCTION reclaim.has_second_factor(p_user uuid) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog
AS $$
DECLARE
  v_factors regclass := to_regclass('auth.mfa_factors');
BEGIN
  IF v_factors IS NULL THEN
    RETURN false;
  END IF;
  IF NOT reclaim.sees_all_rows(v_factors, 'SELECT') OR NOT has_column_privilege(v_factors, 'user_id', 'SELECT')
      OR NOT has_column_privilege(v_factors, 'status', 'SELECT') THEN
    RETURN NULL;
  END IF;
  RETURN EXISTS (SELECT FROM auth.mfa_factors WHERE user_id = p_user AND status::text = 'verified');
END
$$;
REVOKE ALL ON FUNCTION reclaim.has_second_factor FROM PUBLIC;
