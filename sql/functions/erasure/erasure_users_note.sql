-- Notes the owners and members of customers that are being cleared, for the tables that know users only, and returns them.
-- p_owners: those of a customer, the only one, whose row is gone.
CREATE OR REPLACE FUNCTION reclaim.erasure_users_note(p_customers uuid[], p_owners uuid[]) RETURNS uuid[]
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_users uuid[] := reclaim.users_of_customers(p_customers) || coalesce(p_owners, '{}');
BEGIN
  IF v_users <> '{}' THEN
    INSERT INTO reclaim.erasure_users (customer_id, user_id)
      SELECT c.id, c.owner_user_id FROM reclaim.customer_customers c WHERE c.id = ANY (p_customers) AND c.owner_user_id IS NOT NULL
      UNION SELECT m.customer_id, m.user_id FROM reclaim.customer_members m WHERE m.customer_id = ANY (p_customers)
      UNION SELECT p_customers[1], one FROM unnest(p_owners) AS one ORDER BY 1, 2
      ON CONFLICT DO NOTHING;
  END IF;
  RETURN v_users;
END
$$;
REVOKE ALL ON FUNCTION reclaim.erasure_users_note FROM PUBLIC;
