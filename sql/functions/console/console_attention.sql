-- Customers that an operator should look at, p_limit of each kind: erasures that are not complete, the oldest first; frozen customers
-- that will be deleted within a week; those under legal hold.
CREATE OR REPLACE FUNCTION reclaim.console_attention(p_deadline_ms bigint, p_limit integer) RETURNS json
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
  v_week timestamptz := reclaim.now() + interval '168 hours';
BEGIN
  RETURN (SELECT coalesce(json_agg(row_to_json(a) ORDER BY a.place, a.at), '[]') FROM (
    (SELECT 1 AS place, 'deleting' AS state, e.customer_id, '' AS name, '' AS email, reclaim.rfc3339(e.requested_at) AS at,
      (SELECT l.actor FROM reclaim.customer_log l WHERE l.customer_id = e.customer_id AND l.action IN ('delete', 'expire')
        AND l.outcome = 'done' ORDER BY l.created_at DESC LIMIT 1) AS by, NULL::text AS reason,
      (SELECT count(*) FILTER (WHERE r.status IN ('done', 'kept')) FROM reclaim.cascade_receipts r WHERE r.customer_id = e.customer_id) AS receipts_done,
      (SELECT count(*) FROM reclaim.cascade_receipts r WHERE r.customer_id = e.customer_id) AS receipts,
      coalesce(e.reopened_at, e.requested_at) < clock_timestamp() - p_deadline_ms * interval '1 millisecond' AS overdue
      FROM reclaim.erasures e WHERE e.completed_at IS NULL ORDER BY e.requested_at LIMIT p_limit)
    UNION ALL
    (SELECT 2, 'frozen', c.id, reclaim.shown_text(coalesce(c.name, '')), reclaim.shown_text(coalesce(c.email, '')),
      reclaim.rfc3339(c.deletion_effective_at), c.frozen_by, c.freeze_reason, NULL, NULL, false
      FROM reclaim.customer_customers c WHERE c.status = 'frozen' AND c.hold_at IS NULL AND c.deletion_effective_at < v_week
      ORDER BY c.deletion_effective_at LIMIT p_limit)
    UNION ALL
    (SELECT 3, 'held', c.id, reclaim.shown_text(coalesce(c.name, '')), reclaim.shown_text(coalesce(c.email, '')),
      reclaim.rfc3339(c.hold_at), 'admin', reclaim.shown_text(c.hold_reason), NULL, NULL, false
      FROM reclaim.customer_customers c WHERE c.hold_at IS NOT NULL ORDER BY c.hold_at LIMIT p_limit)) a);
END
$$;
REVOKE ALL ON FUNCTION reclaim.console_attention FROM PUBLIC;
