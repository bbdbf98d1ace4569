-- The audit of customers and of registration recovery, newest first: of one customer, one correlation id, one address (p_email, and its
-- hash), or all. p_after: the id of the last row before; ids are "MICROSECONDS-SOURCE-NUMBER".
CREATE OR REPLACE FUNCTION reclaim.audit_page(p_customer uuid, p_correlation uuid, p_email text, p_email_hash text, p_after text,
  p_limit bigint) RETURNS TABLE (id text, object text)
LANGUAGE plpgsql STABLE ROWS 50 SET search_path = pg_catalog, pg_temp SET jit = off SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
  v_at timestamptz := CASE WHEN p_after IS NULL THEN 'infinity'::timestamptz
    ELSE timestamptz 'epoch' + split_part(p_after, '-', 1)::bigint * interval '1 microsecond' END;
  v_source text := coalesce(split_part(p_after, '-', 2), 'z');
  v_number bigint := coalesce(split_part(p_after, '-', 3)::bigint, 0);
  v_all boolean := p_customer IS NULL AND p_correlation IS NULL AND p_email IS NULL;
  v_customers uuid[] := CASE WHEN p_customer IS NOT NULL THEN ARRAY[p_customer] WHEN p_email IS NOT NULL THEN ARRAY(
    SELECT c.id FROM reclaim.customers_find(NULL, false, p_email, NULL, 50) AS f (id) JOIN reclaim.customer_customers c ON c.id = f.id
      WHERE lower(c.email) = p_email
    UNION SELECT c.id FROM auth.users u JOIN reclaim.customer_customers c ON c.owner_user_id = u.id WHERE u.email = p_email
    UNION SELECT u.id FROM auth.users u WHERE u.email = p_email AND reclaim.users_are_customers()) END;
BEGIN
  RETURN QUERY SELECT (extract(epoch FROM a.at) * 1000000)::bigint || '-' || a.source || '-' || a.number,
      json_build_object('at', reclaim.rfc3339(a.at), 'source', CASE a.source WHEN 'c' THEN 'customers' ELSE 'recovery' END,
        'action', a.action, 'outcome', a.outcome, 'actor', a.actor, 'actor_id', a.actor_id, 'actor_role', a.actor_role,
        'customer_id', a.customer_id, 'correlation_id', a.correlation_id, 'count', a.count, 'detail', a.detail,
        'network_hash', a.network_hash, 'sqlstate', a.sqlstate)::text
    FROM (
      (SELECT l.created_at AS at, 'c' AS source, l.id AS number, l.action, l.outcome, l.actor, l.actor_id, l.actor_role, l.customer_id,
          l.correlation_id, 1::bigint AS count, nullif(l.detail, '') AS detail, NULL::text AS network_hash, NULL::text AS sqlstate
        FROM reclaim.customer_log l WHERE l.created_at <= v_at AND (v_all OR l.customer_id = ANY (v_customers) OR l.correlation_id = p_correlation)
          AND (l.created_at, 'c', l.id) < (v_at, v_source, v_number)
        ORDER BY l.created_at DESC, l.id DESC LIMIT p_limit)
      UNION ALL
      (SELECT e.created_at, 'r', e.id, e.kind, e.outcome, NULL, NULL, NULL, NULL, e.correlation_id, e.count, e.detail, e.network_hash,
          e.sqlstate FROM reclaim.auth_cleanup_events e WHERE v_all AND e.created_at <= v_at
          AND (e.created_at, 'r', e.id) < (v_at, v_source, v_number)
        ORDER BY e.created_at DESC, e.id DESC LIMIT p_limit)
      UNION ALL
      (SELECT t.at, 'r', t.id, t.kind, t.outcome, NULL, NULL, NULL, NULL, t.correlation_id, t.count, t.detail, t.network_hash, t.sqlstate
        FROM reclaim.cleanup_trail(p_correlation, p_email_hash) t WHERE NOT v_all AND p_customer IS NULL
          AND (t.at, 'r', t.id) < (v_at, v_source, v_number)
        ORDER BY t.at DESC, t.id DESC LIMIT p_limit)) a
    ORDER BY a.at DESC, a.source DESC, a.number DESC LIMIT p_limit;
END
$$;
REVOKE ALL ON FUNCTION reclaim.audit_page FROM PUBLIC;
