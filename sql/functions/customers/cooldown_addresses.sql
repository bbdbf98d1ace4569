-- The addresses that cannot register again once these customers are deleted: those of their owners' and members' logins, and
-- their own. user_id: whose login has the address, null for none. p_owners: those of customers whose rows are gone. None where the
-- installation has no cool-down.
CREATE OR REPLACE FUNCTION reclaim.cooldown_addresses(p_customers uuid[], p_owners uuid[]) RETURNS TABLE (user_id uuid, address text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
AS $$
BEGIN
  IF (SELECT i.cooldown IS NULL FROM reclaim.installation i) THEN
    RETURN;
  END IF;
  RETURN QUERY
    SELECT u.id, u.email::text FROM auth.users u
      WHERE u.id = ANY (reclaim.users_of_customers(p_customers) || coalesce(p_owners, '{}')) AND u.email <> ''
    UNION
    -- What clearing leaves there is nobody's address.
    SELECT u.id, c.email::text FROM reclaim.customer_customers c
      LEFT JOIN auth.users u ON u.email = lower(c.email::text) AND NOT u.is_sso_user
      WHERE c.id = ANY (p_customers) AND c.email <> '' AND c.email NOT LIKE '%@removed.invalid';
END
$$;
REVOKE ALL ON FUNCTION reclaim.cooldown_addresses FROM PUBLIC;
