-- What the console's overview shows, except what an instance knows by itself. p_deadline_ms: RECLAIM_CASCADE_DEADLINE.
CREATE OR REPLACE FUNCTION reclaim.console_stats(p_deadline_ms bigint) RETURNS json
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_day timestamptz := date_trunc('day', v_now AT TIME ZONE 'UTC') AT TIME ZONE 'UTC';
BEGIN
  RETURN json_build_object(
    'now', reclaim.rfc3339(v_now),
    'customers', reclaim.customers_count(NULL),
    'frozen_again', (SELECT count(*) FROM (SELECT FROM reclaim.customer_log l WHERE l.created_at > v_now - interval '720 hours'
      AND l.action = 'freeze' AND l.outcome = 'done' GROUP BY l.customer_id HAVING count(*) >= 3) f),
    'erasures', (SELECT json_build_object('open', count(*), 'overdue', count(*) FILTER (WHERE e.since < v_now - p_deadline_ms * interval '1 millisecond'),
        'oldest_seconds', extract(epoch FROM v_now - min(e.since))::bigint, 'deadline_seconds', p_deadline_ms / 1000)
      FROM (SELECT coalesce(e.reopened_at, e.requested_at) AS since FROM reclaim.erasures e WHERE e.completed_at IS NULL LIMIT 100000) e),
    'dead', json_build_object('events', (SELECT count(*) FROM (SELECT FROM reclaim.event_returns LIMIT 100000) r),
      'work', (SELECT count(*) FROM (SELECT FROM reclaim.work_items w WHERE w.state = 'dead' LIMIT 100000) w)),
    'participants_failing', (SELECT count(DISTINCT r.participant) FROM reclaim.cascade_receipts r WHERE r.status = 'failed'),
    'refusals', (SELECT json_build_object('last_hour', coalesce(sum(i.refused_last_hour), 0)::bigint,
        'networks', (SELECT count(DISTINCT e.network_hash) FROM reclaim.auth_cleanup_events e WHERE e.kind = 'refusals'
          AND e.outcome = 'ORPHAN_CLEANUP_003' AND e.created_at > v_now - interval '1 hour'))
      FROM reclaim.instances i WHERE i.seen_at > v_now - interval '30 seconds'),
    'codes_today', (SELECT json_build_object('mailed', count(*) FILTER (WHERE e.outcome IN ('sent', 'failed', 'expired')),
        'delivered', count(*) FILTER (WHERE e.outcome = 'sent'))
      FROM reclaim.auth_cleanup_events e WHERE e.kind = 'mail' AND e.created_at >= v_day),
    'mail', json_build_object('possible', (SELECT i.mails OR i.demo FROM reclaim.installation i),
      'waiting', (SELECT count(*) FROM (SELECT FROM reclaim.work_items w WHERE w.kind = 'mail' AND w.state = 'open' LIMIT 100000) w),
      'dead', (SELECT count(*) FROM (SELECT FROM reclaim.work_items w WHERE w.kind = 'mail' AND w.state = 'dead' LIMIT 100000) w),
      'oldest_seconds', (SELECT extract(epoch FROM v_now - min(w.created_at))::bigint FROM reclaim.work_items w
        WHERE w.kind = 'mail' AND w.state = 'open')),
    'instances', (SELECT coalesce(json_agg(json_build_object('id', i.id, 'name', i.name, 'version', i.version,
        'started_at', reclaim.rfc3339(i.started_at), 'seen_at', reclaim.rfc3339(i.seen_at), 'gate_lag_ms', i.gate_lag_ms,
        'is_leader', i.is_leader AND i.seen_at > v_now - interval '30 seconds', 'is_alive', i.seen_at > v_now - interval '30 seconds')
        ORDER BY i.started_at, i.id), '[]') FROM reclaim.instances i),
    'last_freeze', (SELECT json_build_object('customer_id', c.id, 'name', reclaim.shown_text(coalesce(c.name, '')),
        'at', reclaim.rfc3339(c.tm_deletion_scheduled), 'layers', reclaim.freeze_by_layer(c))
      FROM reclaim.customer_customers c WHERE c.status = 'frozen' ORDER BY c.tm_deletion_scheduled DESC, c.id DESC LIMIT 1),
    'has_broker', reclaim.has_broker(),
    'attention', reclaim.console_attention(p_deadline_ms, 5),
    'hour', reclaim.console_series(interval '1 minute', 60),
    'day', reclaim.console_series(interval '15 minutes', 96));
END
$$;
REVOKE ALL ON FUNCTION reclaim.console_stats FROM PUBLIC;
