-- Ends a user's membership of a customer and returns the member object; null when it is no member of it.
CREATE OR REPLACE FUNCTION reclaim.member_remove(p_customer uuid, p_user uuid) RETURNS json
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_object json := reclaim.member_object(p_customer, p_user);
BEGIN
  PERFORM reclaim.change_by('system', NULL, NULL); -- the caller writes the audit row
  DELETE FROM reclaim.customer_members WHERE customer_id = p_customer AND user_id = p_user;
  RETURN CASE WHEN FOUND THEN v_object END;
END
$$;
REVOKE ALL ON FUNCTION reclaim.member_remove FROM PUBLIC;
