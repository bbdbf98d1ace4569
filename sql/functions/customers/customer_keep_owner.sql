-- Locks a customer's owner while the customer is written (reclaim.keep_user). Runs as its owner, since programs that write
-- customers may have no right to auth.users. Where users are customers, every gate forgets which customer the user was.
CREATE OR REPLACE FUNCTION reclaim.customer_keep_owner() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM reclaim.keep_user(NEW.owner_user_id);
  IF NEW.owner_user_id <> NEW.id AND reclaim.users_are_customers() THEN
    INSERT INTO reclaim.gate_ended (kind, id) VALUES ('user', NEW.owner_user_id);
  END IF;
  RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_keep_owner FROM PUBLIC;
