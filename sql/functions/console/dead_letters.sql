-- What could not be delivered: events that no queue took, then work that failed too often. p_after: the id of the last row before.
CREATE OR REPLACE FUNCTION reclaim.dead_letters(p_after text, p_limit bigint) RETURNS TABLE (id text, object text)
LANGUAGE plpgsql STABLE ROWS 50 SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
  v_kind text := coalesce(split_part(p_after, '-', 1), '');
  v_number bigint := coalesce(split_part(p_after, '-', 2)::bigint, 0);
BEGIN
  RETURN QUERY SELECT d.kind || '-' || d.number, d.object::text FROM (
    (SELECT 'e' AS kind, r.position AS number, json_build_object('kind', 'event', 'id', r.event_id, 'at', reclaim.rfc3339(r.returned_at),
        'what', o.type, 'customer_id', o.customer_id, 'epoch', o.epoch, 'sequence', o.sequence, 'tries', NULL, 'reason', r.reason) AS object
      FROM reclaim.event_returns r JOIN reclaim.event_outbox o ON o.id = r.event_id
      WHERE v_kind <= 'e' AND r.position > CASE v_kind WHEN 'e' THEN v_number ELSE 0 END ORDER BY r.position LIMIT p_limit)
    UNION ALL
    (SELECT 'w', w.id, json_build_object('kind', 'work', 'id', w.id::text, 'at', reclaim.rfc3339(w.updated_at),
        'what', coalesce(w.payload ->> 'template', w.kind), 'customer_id', w.payload ->> 'customer_id', 'epoch', NULL, 'sequence', NULL, 'tries', w.tries,
        'reason', coalesce(w.last_error, ''))
      FROM reclaim.work_items w WHERE w.state = 'dead' AND w.id > CASE v_kind WHEN 'w' THEN v_number ELSE 0 END
      ORDER BY w.id LIMIT p_limit)) d ORDER BY d.kind, d.number LIMIT p_limit;
END
$$;
REVOKE ALL ON FUNCTION reclaim.dead_letters FROM PUBLIC;
