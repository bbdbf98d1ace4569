-- Lets only a customer that is not deleted get a member. Its row is locked in share mode, so that a deletion either sees
-- the member or makes this fail; then the user's (reclaim.keep_user). Runs as its owner, since programs that write members
-- may have no right to either table.
CREATE OR REPLACE FUNCTION reclaim.member_keep() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_status text;
BEGIN
  PERFORM reclaim.customer_make(NEW.customer_id);
  SELECT status INTO v_status FROM reclaim.customer_customers WHERE id = NEW.customer_id FOR SHARE;
  IF v_status IS NULL THEN
    RAISE EXCEPTION 'there is no customer %', NEW.customer_id USING ERRCODE = 'foreign_key_violation';
  ELSIF v_status = 'deleted' THEN
    RAISE EXCEPTION 'the customer % is deleted and gets no members', NEW.customer_id USING ERRCODE = 'foreign_key_violation';
  END IF;
  PERFORM reclaim.keep_user(NEW.user_id);
  RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION reclaim.member_keep FROM PUBLIC;
