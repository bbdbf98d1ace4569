-- Deletes the customers that these users were, once they have left auth.users: their erasure begins, consumers are told. One without a
-- row gets it for that. What others own is left alone, and what a legal hold keeps. p_role: the database role that removed the users,
-- for the audit. Returns how many it deleted.
CREATE OR REPLACE FUNCTION reclaim.users_leave(p_users uuid[], p_role text) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_user uuid;
  v_count integer := 0;
BEGIN
  PERFORM set_config('reclaim.actor_role', coalesce(p_role, ''), true);
  FOR v_user IN SELECT DISTINCT one FROM unnest(p_users) AS one ORDER BY one LOOP
    CONTINUE WHEN NOT reclaim.user_has_left(v_user);
    PERFORM pg_advisory_xact_lock(1919247213, reclaim.customer_turn(v_user));
    IF NOT EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.id = v_user OR c.owner_user_id = v_user)
        AND NOT EXISTS (SELECT FROM reclaim.customer_told t WHERE t.customer_id = v_user AND t.status = 'deleted') THEN
      INSERT INTO reclaim.customer_customers (id, owner_user_id, email, tm_create) VALUES (v_user, v_user, '', clock_timestamp())
        ON CONFLICT (id) DO NOTHING;
    END IF;
    UPDATE reclaim.customer_customers c SET status = 'deleted'
      WHERE c.id = v_user AND c.owner_user_id = v_user AND c.status <> 'deleted' AND c.hold_at IS NULL;
    v_count := v_count + CASE WHEN FOUND THEN 1 ELSE 0 END;
  END LOOP;
  RETURN v_count;
END
$$;
REVOKE ALL ON FUNCTION reclaim.users_leave FROM PUBLIC;
