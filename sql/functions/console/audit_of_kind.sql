-- What was recorded of registration recovery and of codes, newest first: mails that carried a code, or requests that a limit
-- refused. Pages and objects are as of reclaim.audit_page().
CREATE OR REPLACE FUNCTION reclaim.audit_of_kind(p_kind text, p_after text, p_limit bigint) RETURNS TABLE (id text, object text)
LANGUAGE plpgsql STABLE ROWS 50 SET search_path = pg_catalog, pg_temp SET jit = off SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
  v_at timestamptz := CASE WHEN p_after IS NULL THEN 'infinity'::timestamptz
    ELSE timestamptz 'epoch' + split_part(p_after, '-', 1)::bigint * interval '1 microsecond' END;
  v_number bigint := coalesce(split_part(p_after, '-', 3)::bigint, 0);
BEGIN
  RETURN QUERY SELECT (extract(epoch FROM e.created_at) * 1000000)::bigint || '-r-' || e.id,
      json_build_object('at', reclaim.rfc3339(e.created_at), 'source', 'recovery', 'action', e.kind, 'outcome', e.outcome, 'actor', NULL,
        'actor_id', NULL, 'actor_role', NULL, 'customer_id', NULL, 'correlation_id', e.correlation_id, 'count', e.count,
        'detail', e.detail, 'network_hash', e.network_hash, 'sqlstate', e.sqlstate)::text
    FROM reclaim.auth_cleanup_events e WHERE e.kind = p_kind AND (p_kind <> 'refusals' OR e.outcome = 'ORPHAN_CLEANUP_003')
      AND e.created_at <= v_at AND (e.created_at, e.id) < (v_at, v_number)
    ORDER BY e.created_at DESC, e.id DESC LIMIT p_limit;
END
$$;
REVOKE ALL ON FUNCTION reclaim.audit_of_kind FROM PUBLIC;
