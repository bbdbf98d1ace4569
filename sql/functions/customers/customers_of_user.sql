-- The customers that a user owns or is a member of, of which p_choice names one, or null. Where users are customers, the one that the
-- user is comes with them. A user who has left has a deleted one, whatever rows there are; so has one whose own row was deleted and
-- is gone.
CREATE OR REPLACE FUNCTION reclaim.customers_of_user(p_user uuid, p_choice uuid) RETURNS SETOF reclaim.customer_customers
LANGUAGE plpgsql STABLE ROWS 1
AS $$
DECLARE
  v_left reclaim.customer_customers;
  v_users boolean := reclaim.users_are_customers();
BEGIN
  v_left.id := p_user;
  v_left.owner_user_id := p_user;
  v_left.status := 'deleted';
  IF v_users AND reclaim.user_has_left(p_user) THEN
    RETURN NEXT v_left;
    RETURN;
  END IF;
  -- The array is read first, so that both halves of the condition use an index.
  RETURN QUERY SELECT c.* FROM reclaim.customer_customers c
    WHERE (c.owner_user_id = p_user
        OR c.id = ANY (ARRAY(SELECT m.customer_id FROM reclaim.customer_members m WHERE m.user_id = p_user)))
      AND (p_choice IS NULL OR c.id = p_choice);
  IF v_users AND coalesce(p_choice, p_user) = p_user THEN
    RETURN QUERY SELECT c.* FROM reclaim.customer_customers c WHERE c.id = p_user AND c.owner_user_id IS NULL;
    RETURN QUERY SELECT i.* FROM reclaim.implied_customer(p_user) i;
    IF NOT FOUND AND NOT EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.id = p_user)
        AND EXISTS (SELECT FROM reclaim.customer_told t WHERE t.customer_id = p_user AND t.status <> 'active') THEN
      RETURN NEXT v_left;
    END IF;
  END IF;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customers_of_user FROM PUBLIC;
