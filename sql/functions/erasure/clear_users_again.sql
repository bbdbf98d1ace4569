-- Clears what was written into logins that had to stay, and into ownership rows, after the erasure of these customers was
-- complete, and tries again what was kept of them. Returns of which customers rows were cleared in which table, and how many.
-- A user who has a customer is left alone.
CREATE OR REPLACE FUNCTION reclaim.clear_users_again(p_customers uuid[]) RETURNS TABLE (customer_id uuid, name text, rows bigint)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
DECLARE
  v_users uuid[] := ARRAY(SELECT DISTINCT u.user_id FROM reclaim.erasure_users u WHERE u.customer_id = ANY (p_customers)
    AND NOT EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.owner_user_id = u.user_id AND c.status <> 'deleted')
    AND NOT EXISTS (SELECT FROM reclaim.customer_members m WHERE m.user_id = u.user_id)
    AND NOT EXISTS (SELECT FROM reclaim.implied_customer(u.user_id)) ORDER BY 1);
  v_logins uuid[];
  v_before jsonb;
BEGIN
  IF v_users = '{}' THEN
    RETURN;
  END IF;
  PERFORM FROM auth.users u WHERE u.id = ANY (v_users) ORDER BY u.id FOR UPDATE; -- none gets a customer meanwhile
  v_logins := reclaim.logins_dirty(v_users);
  v_before := (SELECT jsonb_agg(to_jsonb(s)) FROM reclaim.ownership_shown(v_users) s);
  IF v_logins <> '{}' THEN
    PERFORM reclaim.alias_users(v_logins);
  END IF;
  PERFORM reclaim.clear_kept(ARRAY(
    SELECT k.customer_id FROM reclaim.erasure_kept k WHERE k.customer_id = ANY (p_customers)
    UNION SELECT u.customer_id FROM reclaim.erasure_users u WHERE u.customer_id = ANY (p_customers) AND u.user_id = ANY (v_users)
      AND (u.user_id IN (SELECT s.user_id FROM jsonb_to_recordset(v_before) AS s (user_id uuid))
        OR EXISTS (SELECT FROM auth.users l WHERE l.id = u.user_id)) ORDER BY 1));
  RETURN QUERY
    SELECT u.customer_id, late.name, count(*) FROM (
      SELECT 'auth.users' AS name, one AS user_id FROM unnest(v_logins) AS one WHERE one <> ALL (reclaim.logins_dirty(v_logins))
      UNION ALL
      SELECT gone.name, gone.user_id FROM (SELECT s.name, s.user_id, s.shown FROM jsonb_to_recordset(v_before) AS s (name text, user_id uuid, shown text)
        EXCEPT ALL SELECT s.name, s.user_id, s.shown FROM reclaim.ownership_shown(v_users) s) AS gone) AS late
    JOIN reclaim.erasure_users u ON u.user_id = late.user_id AND u.customer_id = ANY (p_customers) GROUP BY 1, 2;
END
$$;
REVOKE ALL ON FUNCTION reclaim.clear_users_again FROM PUBLIC;
