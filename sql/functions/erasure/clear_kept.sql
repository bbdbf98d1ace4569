-- Tries again to empty what was left of ownership tables and of Supabase Auth's for these customers, whose erasure is complete.
CREATE OR REPLACE FUNCTION reclaim.clear_kept(p_customers uuid[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
DECLARE
  v_users uuid[] := ARRAY(SELECT u.user_id FROM reclaim.erasure_users u WHERE u.customer_id = ANY (p_customers)
    AND NOT EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.owner_user_id = u.user_id AND c.status <> 'deleted')
    AND NOT EXISTS (SELECT FROM reclaim.customer_members m WHERE m.user_id = u.user_id));
BEGIN
  IF v_users <> '{}' THEN
    DELETE FROM reclaim.erasure_kept k WHERE k.customer_id = ANY (p_customers) AND k.name = 'auth.users' AND NOT EXISTS (
      SELECT FROM reclaim.erasure_users u WHERE u.customer_id = k.customer_id AND NOT u.user_id = ANY (v_users));
    PERFORM reclaim.clear_ownership(v_users, p_customers, true);
    BEGIN
      DELETE FROM reclaim.erasure_kept WHERE customer_id = ANY (p_customers)
        AND name IN (SELECT t.name::text FROM reclaim.sign_in_tables() t);
      PERFORM reclaim.forget_sign_ins(v_users, p_customers, true);
    EXCEPTION WHEN insufficient_privilege THEN
      NULL; -- then all of it is still kept
    END;
  END IF;
END
$$;
REVOKE ALL ON FUNCTION reclaim.clear_kept FROM PUBLIC;
