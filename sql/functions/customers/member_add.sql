-- Makes a user a member of a customer, or gives a member another role. Returns done, unchanged, unknown (no such
-- customer), deleted, or user_unknown. A role of null is that of the member already, or member.
CREATE OR REPLACE FUNCTION reclaim.member_add(p_customer uuid, p_user uuid, p_role text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_status text;
BEGIN
  PERFORM reclaim.change_by('system', NULL, NULL); -- the caller writes the audit row
  PERFORM reclaim.customer_make(p_customer);
  SELECT status INTO v_status FROM reclaim.customer_customers WHERE id = p_customer FOR SHARE;
  IF v_status IS NULL OR v_status = 'deleted' THEN
    RETURN coalesce(v_status, 'unknown');
  END IF;
  IF NOT EXISTS (SELECT FROM auth.users WHERE id = p_user AND deleted_at IS NULL) THEN
    RETURN 'user_unknown';
  END IF;
  INSERT INTO reclaim.customer_members (customer_id, user_id, role) VALUES (p_customer, p_user, coalesce(p_role, 'member'))
    ON CONFLICT (customer_id, user_id) DO NOTHING;
  IF FOUND THEN
    RETURN 'done';
  END IF;
  UPDATE reclaim.customer_members SET role = p_role
    WHERE customer_id = p_customer AND user_id = p_user AND p_role IS NOT NULL AND role <> p_role;
  RETURN 'unchanged';
END
$$;
REVOKE ALL ON FUNCTION reclaim.member_add FROM PUBLIC;
