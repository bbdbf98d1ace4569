-- The member object of the API; the address is null for a user who is not in auth.users.
CREATE OR REPLACE FUNCTION reclaim.member_object(p_customer uuid, p_user uuid) RETURNS json
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RETURN (SELECT json_build_object('user_id', m.user_id, 'role', m.role, 'email', u.email,
      'created_at', reclaim.rfc3339(m.created_at))
    FROM reclaim.customer_members m LEFT JOIN auth.users u ON u.id = m.user_id AND u.deleted_at IS NULL
    WHERE m.customer_id = p_customer AND m.user_id = p_user);
END
$$;
REVOKE ALL ON FUNCTION reclaim.member_object FROM PUBLIC;
