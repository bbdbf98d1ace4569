-- Finds customers with a row whose users have left unnoticed: removed without the triggers of reclaim.users_watch. Looks at p_limit
-- rows behind p_after and returns the last one's id, null at the end.
CREATE OR REPLACE FUNCTION reclaim.users_sweep(p_after uuid, p_limit integer, OUT last uuid, OUT found integer)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_left uuid[];
BEGIN
  found := 0;
  IF NOT reclaim.users_are_customers() THEN
    RETURN;
  END IF;
  WITH page AS MATERIALIZED (
    SELECT c.id, c.owner_user_id, c.status, c.hold_at FROM reclaim.customer_customers c WHERE c.id > p_after ORDER BY c.id LIMIT p_limit
  )
  SELECT (SELECT p.id FROM page p ORDER BY p.id OFFSET p_limit - 1), ARRAY(SELECT p.id FROM page p
      WHERE p.owner_user_id = p.id AND p.status <> 'deleted' AND p.hold_at IS NULL
        AND NOT EXISTS (SELECT FROM auth.users u WHERE u.id = p.id AND u.deleted_at IS NULL))
    INTO last, v_left;
  v_left := ARRAY(SELECT one FROM unnest(v_left) AS one WHERE reclaim.user_has_left(one));
  found := cardinality(v_left);
  PERFORM reclaim.users_removed(v_left, false);
END
$$;
REVOKE ALL ON FUNCTION reclaim.users_sweep FROM PUBLIC;
