-- Locks a user who gets a customer, or becomes a member of one, as a foreign key would: the clean-up, which locks the user
-- before it looks for customers, waits for this transaction or makes it fail. A user who is not in auth.users is let be.
CREATE OR REPLACE FUNCTION reclaim.keep_user(p_user uuid) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF NOT reclaim.may_lock_users() OR NOT EXISTS (SELECT FROM auth.users WHERE id = p_user) THEN
    RETURN;
  END IF;
  PERFORM FROM auth.users WHERE id = p_user FOR KEY SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the user % was deleted while its customer was being written', p_user
      USING ERRCODE = 'foreign_key_violation';
  END IF;
END
$$;
REVOKE ALL ON FUNCTION reclaim.keep_user FROM PUBLIC;
