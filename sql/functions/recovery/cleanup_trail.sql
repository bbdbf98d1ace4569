-- What happened to a correlation id or to an address, by its hash: steps, mails and counted refusals. A correlation id also finds what
-- else happened to its code: the other step and the mail. Rows of the log from before there were events stand for themselves.
--
-- Without SET, so that it is inlined.
CREATE OR REPLACE FUNCTION reclaim.cleanup_trail(p_correlation uuid, p_email_hash text)
  RETURNS TABLE (id bigint, at timestamptz, kind text, outcome text, count bigint, correlation_id uuid, sqlstate text,
    constraint_name text, detail text, network_hash text, log_id bigint, log_status text, log_error text, log_updated_at timestamptz)
LANGUAGE sql STABLE
AS $$
  WITH own AS MATERIALIZED (SELECT e.* FROM reclaim.auth_cleanup_events e WHERE e.correlation_id = p_correlation),
  found AS (SELECT * FROM own
    UNION SELECT e.* FROM reclaim.auth_cleanup_events e WHERE e.email_hash = p_email_hash
    UNION SELECT e.* FROM own o JOIN reclaim.auth_cleanup_events e ON e.email_hash = o.email_hash AND e.log_id = o.log_id),
  told AS (SELECT f.id, f.created_at, f.kind, f.outcome, f.detail, f.count, f.counted_from, f.sqlstate,
      f.constraint_name, f.correlation_id, f.network_hash, f.log_id FROM found f
    UNION ALL SELECT l.id, l.created_at, l.step, coalesce(l.error_code, l.status), l.orphan_classification,
      1, NULL, NULL, NULL, l.correlation_id, l.ip_hash, l.id FROM reclaim.auth_cleanup_log l
    WHERE (l.correlation_id = p_correlation OR l.email_hash = p_email_hash) AND NOT EXISTS (SELECT FROM
      reclaim.auth_cleanup_events e WHERE e.correlation_id = l.correlation_id
      AND e.email_hash = l.email_hash AND e.kind = l.step))
  SELECT t.id, coalesce(t.counted_from, t.created_at), t.kind, t.outcome, t.count, t.correlation_id, t.sqlstate, t.constraint_name,
    nullif(pg_catalog.concat_ws('; ', t.detail, r.actor || ': ' || r.reason), ''), t.network_hash, t.log_id,
    l.status, l.error_code, l.updated_at
  FROM told t LEFT JOIN reclaim.auth_cleanup_log l ON l.id = t.log_id
    LEFT JOIN reclaim.auth_cleanup_reasons r ON r.log_id = t.log_id
$$;
REVOKE ALL ON FUNCTION reclaim.cleanup_trail FROM PUBLIC;
