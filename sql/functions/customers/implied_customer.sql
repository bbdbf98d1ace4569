-- The customer that a user is without a row in customer_customers, as the row would be; nothing where users are not customers. There
-- is none for a user who owns a row of another id: that is the user's customer, and stays so when it is deleted. An id that was
-- frozen or deleted when its row went never comes back.
CREATE OR REPLACE FUNCTION reclaim.implied_customer(p_id uuid) RETURNS SETOF reclaim.customer_customers
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1
AS $$
DECLARE
  v_customer reclaim.customer_customers;
BEGIN
  IF p_id IS NULL OR NOT reclaim.users_are_customers()
      OR EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.id = p_id)
      OR EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.owner_user_id = p_id)
      OR EXISTS (SELECT FROM reclaim.customer_told t WHERE t.customer_id = p_id AND t.status <> 'active')
      OR reclaim.user_has_left(p_id) THEN
    RETURN;
  END IF;
  v_customer.id := p_id;
  v_customer.owner_user_id := p_id;
  v_customer.status := 'active';
  v_customer.version := 1;
  SELECT coalesce(u.email, ''), u.created_at INTO v_customer.email, v_customer.tm_create FROM auth.users u WHERE u.id = p_id;
  v_customer.tm_update := v_customer.tm_create;
  RETURN NEXT v_customer;
END
$$;
REVOKE ALL ON FUNCTION reclaim.implied_customer FROM PUBLIC;
