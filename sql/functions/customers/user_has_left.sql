-- Whether users are customers and this one is not in auth.users, or marked as deleted there: its credentials and its customer count
-- no more, whatever the customer's row says until the leader has deleted it. Users that row security hides from this role are not
-- taken for deleted: that is an error.
CREATE OR REPLACE FUNCTION reclaim.user_has_left(p_user uuid) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
DECLARE
  v_deleted boolean;
BEGIN
  IF NOT reclaim.users_are_customers() THEN
    RETURN false;
  END IF;
  SELECT u.deleted_at IS NOT NULL INTO v_deleted FROM auth.users u WHERE u.id = p_user;
  IF v_deleted IS NULL AND NOT reclaim.sees_all_rows('auth.users', 'SELECT') THEN
    RAISE insufficient_privilege USING MESSAGE = 'row-level security hides users from this role';
  END IF;
  RETURN coalesce(v_deleted, true);
END
$$;
REVOKE ALL ON FUNCTION reclaim.user_has_left FROM PUBLIC;
