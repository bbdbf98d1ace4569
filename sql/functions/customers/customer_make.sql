-- Makes the row of a customer that is implied, in the transaction that needs it: a freeze, a deletion, a legal hold, a key, a member.
-- True if it made one. The user's row is locked before anything is looked at: against the clean-up, which locks it to delete it,
-- and against call set-ups, which lock it in share mode where there is no customer's row.
CREATE OR REPLACE FUNCTION reclaim.customer_make(p_id uuid) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$
BEGIN
  IF NOT reclaim.users_are_customers() OR EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.id = p_id) THEN
    RETURN false;
  END IF;
  PERFORM FROM auth.users u WHERE u.id = p_id FOR NO KEY UPDATE;
  INSERT INTO reclaim.customer_customers (id, owner_user_id, email, tm_create)
    SELECT i.id, i.owner_user_id, i.email, i.tm_create FROM reclaim.implied_customer(p_id) i
    ON CONFLICT (id) DO NOTHING;
  RETURN FOUND;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_make FROM PUBLIC;
