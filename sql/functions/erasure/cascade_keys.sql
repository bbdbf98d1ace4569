-- The ids by which a participant's table knows these customers, and whose each is: their own, or those of their accounts, or
-- those of the users whose logins went with them. A user who still has a customer is not one of them.
CREATE OR REPLACE FUNCTION reclaim.cascade_keys(p reclaim.cascade_participants, p_ids uuid[], OUT keys uuid[], OUT customers uuid[])
LANGUAGE plpgsql STABLE SET search_path = pg_catalog
AS $$
BEGIN
  keys := p_ids;
  customers := p_ids;
  IF p.id_of = 'account' THEN
    SELECT coalesce(array_agg(a.id), '{}'), coalesce(array_agg(a.customer_id), '{}') INTO keys, customers
      FROM reclaim.billing_accounts a WHERE a.customer_id = ANY (p_ids);
  ELSIF p.id_of = 'user' THEN
    SELECT coalesce(array_agg(u.user_id), '{}'), coalesce(array_agg(u.customer_id), '{}') INTO keys, customers
      FROM reclaim.erasure_users u WHERE u.customer_id = ANY (p_ids)
        AND NOT EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.owner_user_id = u.user_id AND c.status <> 'deleted')
        AND NOT EXISTS (SELECT FROM reclaim.customer_members m WHERE m.user_id = u.user_id)
        AND NOT EXISTS (SELECT FROM reclaim.implied_customer(u.user_id));
  END IF;
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_keys FROM PUBLIC;
