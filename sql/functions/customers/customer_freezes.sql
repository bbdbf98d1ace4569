-- How often a customer was frozen in the last 30 days, by whomever, or by itself only; and for how many seconds the oldest of its
-- last p_limit freezes still counts. The audit has them, as long as RECLAIM_AUDIT_RETENTION keeps it.
CREATE OR REPLACE FUNCTION reclaim.customer_freezes(p_id uuid, p_own boolean DEFAULT false, p_limit integer DEFAULT 1,
  OUT count integer, OUT seconds integer)
LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
DECLARE
  v_since timestamptz := pg_catalog.clock_timestamp() - interval '720 hours';
  v_times timestamptz[] := ARRAY(SELECT l.created_at FROM reclaim.customer_log l WHERE l.customer_id = p_id AND l.created_at > v_since
    AND l.action = 'freeze' AND l.outcome = 'done' AND (NOT p_own OR l.actor IN ('owner', 'key')) ORDER BY l.created_at DESC);
BEGIN
  count := pg_catalog.cardinality(v_times);
  seconds := greatest(pg_catalog.ceil(extract(epoch FROM v_times[p_limit] - v_since)), 1)::integer;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_freezes FROM PUBLIC;
