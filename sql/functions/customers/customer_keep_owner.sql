-- Locks a customer's owner while the customer is written, as a foreign key would: the clean-up, which locks the user before
-- it looks for customers, waits for this transaction or makes it fail. Runs as its owner, since programs that write
-- customers may have no right to auth.users.
CREATE OR REPLACE FUNCTION reclaim.customer_keep_owner() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog
AS $$
BEGIN
  IF NOT reclaim.may_lock_users() OR NOT EXISTS (SELECT FROM auth.users WHERE id = NEW.owner_user_id) THEN
    RETURN NEW; -- the owner is not in auth.users
  END IF;
  PERFORM FROM auth.users WHERE id = NEW.owner_user_id FOR KEY SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the user % was deleted while its customer was being written', NEW.owner_user_id
      USING ERRCODE = 'foreign_key_violation';
  END IF;
  RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_keep_owner FROM PUBLIC;
