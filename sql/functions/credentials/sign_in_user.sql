-- The user whom a code mailed to this address signs in, or null. Single sign-on and a second factor are no obstacle. One
-- address may have several single sign-on users beside the one with a password: the owner of a customer is preferred.
--
-- Only the password user's address is sure to have an index (unique where is_sso_user is false). For the others Supabase
-- Auth has one on (instance_id, lower(email)); it writes the nil UUID there.
CREATE OR REPLACE FUNCTION reclaim.sign_in_user(p_email text) RETURNS uuid
LANGUAGE plpgsql STABLE SET search_path = pg_catalog
AS $$
DECLARE
  v_single_sign_on text := 'u.email = $1';
  v_user uuid;
BEGIN
  IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'auth.users'::regclass AND attname = 'instance_id'
             AND atttypid = 'uuid'::regtype AND has_column_privilege(attrelid, attnum, 'SELECT')) THEN
    v_single_sign_on := '(u.instance_id = ''00000000-0000-0000-0000-000000000000'' AND lower(u.email::text) = $1)
      OR (u.instance_id IS NULL AND lower(u.email::text) = $1)';
  END IF;
  EXECUTE format('SELECT u.id FROM (
      SELECT id FROM auth.users WHERE email = $1 AND is_sso_user = false
      UNION ALL SELECT u.id FROM auth.users u WHERE u.is_sso_user AND (%s)) AS one JOIN auth.users u ON u.id = one.id
    WHERE u.email_confirmed_at IS NOT NULL AND u.deleted_at IS NULL AND u.is_anonymous IS NOT TRUE
      AND coalesce(u.banned_until <= clock_timestamp(), true)
    ORDER BY EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.owner_user_id = u.id AND c.status <> ''deleted'') DESC,
      EXISTS (SELECT FROM reclaim.customer_members m WHERE m.user_id = u.id) DESC,
      u.is_sso_user, u.created_at, u.id LIMIT 1', v_single_sign_on) INTO v_user USING p_email;
  RETURN v_user;
END
$$;
REVOKE ALL ON FUNCTION reclaim.sign_in_user FROM PUBLIC;
