-- The owners and members of these customers.
CREATE OR REPLACE FUNCTION reclaim.users_of_customers(p_ids uuid[]) RETURNS uuid[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF NOT reclaim.sees_all_rows('reclaim.customer_members', 'SELECT') THEN
    RAISE insufficient_privilege USING MESSAGE = 'row-level security hides members of customers from this role';
  END IF;
  RETURN ARRAY(
    SELECT owner_user_id FROM reclaim.customer_customers WHERE id = ANY (p_ids) AND owner_user_id IS NOT NULL
    UNION SELECT user_id FROM reclaim.customer_members WHERE customer_id = ANY (p_ids) ORDER BY 1);
END
$$;
REVOKE ALL ON FUNCTION reclaim.users_of_customers FROM PUBLIC;
