-- What happened to a customer, newest first: audit rows, events, mails and receipts, in real time; with the customer, its freeze by
-- layer and its erasure. Null without such a customer. p_after: as reclaim.audit_page() has it.
CREATE OR REPLACE FUNCTION reclaim.customer_timeline(p_customer uuid, p_after text, p_limit bigint) RETURNS json
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
  v_at timestamptz := CASE WHEN p_after IS NULL THEN 'infinity'::timestamptz
    ELSE timestamptz 'epoch' + split_part(p_after, '-', 1)::bigint * interval '1 microsecond' END;
  v_source text := coalesce(split_part(p_after, '-', 2), 'z');
  v_number bigint := coalesce(split_part(p_after, '-', 3)::bigint, 0);
  v_broker boolean := reclaim.has_broker();
  v_customer reclaim.customer_customers;
  v_erased_at timestamptz; -- in a sandbox, in real time, when the erasure began; its own times follow the clock of the sandbox
BEGIN
  SELECT * INTO v_customer FROM reclaim.customer_row(p_customer);
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  SELECT max(l.created_at) INTO v_erased_at FROM reclaim.customer_log l WHERE l.customer_id = p_customer
    AND l.action IN ('delete', 'expire') AND l.outcome = 'done' AND (SELECT i.sandbox FROM reclaim.installation i);
  RETURN (WITH found AS MATERIALIZED (SELECT * FROM (
      (SELECT l.created_at AS at, 'a' AS source, l.id AS number, json_build_object('at', reclaim.rfc3339(l.created_at), 'kind', 'audit',
          'what', l.action, 'outcome', l.outcome, 'actor', l.actor, 'actor_id', l.actor_id, 'correlation_id', l.correlation_id,
          'detail', nullif(l.detail, ''), 'rows', NULL) AS object
        FROM reclaim.customer_log l WHERE l.customer_id = p_customer AND (l.created_at, 'a', l.id) < (v_at, v_source, v_number)
        ORDER BY l.created_at DESC, l.id DESC LIMIT p_limit + 1)
      UNION ALL
      (SELECT e.created_at, 'e', e.position, json_build_object('at', reclaim.rfc3339(e.created_at), 'kind', 'event', 'what', e.type,
          'outcome', CASE WHEN r.event_id IS NOT NULL THEN 'returned' WHEN e.published_at IS NOT NULL THEN 'published'
            WHEN v_broker THEN 'waiting' ELSE 'kept' END,
          'actor', NULL, 'actor_id', NULL, 'correlation_id', NULL, 'detail', r.reason, 'rows', NULL)
        FROM reclaim.event_outbox e LEFT JOIN reclaim.event_returns r ON r.event_id = e.id
        WHERE e.customer_id = p_customer AND (e.created_at, 'e', e.position) < (v_at, v_source, v_number)
        ORDER BY e.created_at DESC, e.position DESC LIMIT p_limit + 1)
      UNION ALL
      (SELECT m.created_at, 'm', m.id, json_build_object('at', reclaim.rfc3339(m.created_at), 'kind', 'mail', 'what', m.template,
          'outcome', m.outcome, 'actor', NULL, 'actor_id', NULL, 'correlation_id', NULL, 'detail', m.detail, 'rows', NULL)
        FROM reclaim.customer_mails m WHERE m.customer_id = p_customer AND (m.created_at, 'm', m.id) < (v_at, v_source, v_number)
        ORDER BY m.created_at DESC, m.id DESC LIMIT p_limit + 1)
      UNION ALL
      (SELECT w.created_at, 'w', w.id, json_build_object('at', reclaim.rfc3339(w.created_at), 'kind', 'mail', 'what', w.payload ->> 'template',
          'outcome', 'waiting', 'actor', NULL, 'actor_id', NULL, 'correlation_id', NULL,
          'detail', w.last_error, 'rows', NULL)
        FROM reclaim.work_items w WHERE w.kind = 'mail' AND w.state = 'open' AND w.payload ->> 'customer_id' = p_customer::text
          AND (w.created_at, 'w', w.id) < (v_at, v_source, v_number)
        ORDER BY w.created_at DESC, w.id DESC LIMIT p_limit + 1)
      UNION ALL
      (SELECT r.at, 'r', r.number, json_build_object('at', reclaim.rfc3339(r.at), 'kind', 'receipt', 'what', r.participant, 'outcome', r.status,
          'actor', NULL, 'actor_id', NULL, 'correlation_id', NULL, 'detail', r.error, 'rows', r.rows)
        FROM (SELECT coalesce(CASE WHEN v_erased_at IS NOT NULL THEN
              least(v_erased_at + (coalesce(r.done_at, r.last_tried_at, e.requested_at) - e.requested_at), clock_timestamp()) END,
            r.done_at, r.last_tried_at, e.requested_at) AS at, row_number() OVER (ORDER BY r.participant) AS number, r.*
          FROM reclaim.cascade_receipts r JOIN reclaim.erasures e USING (customer_id) WHERE r.customer_id = p_customer) r
        WHERE (r.at, 'r', r.number) < (v_at, v_source, v_number) ORDER BY r.at DESC, r.number DESC LIMIT p_limit + 1)) f
      ORDER BY f.at DESC, f.source DESC, f.number DESC LIMIT p_limit + 1),
    page AS (SELECT f.*, row_number() OVER (ORDER BY f.at DESC, f.source DESC, f.number DESC) AS n FROM found f)
    SELECT json_build_object('customer', reclaim.customer_object_for_admin(v_customer), 'layers', reclaim.freeze_by_layer(v_customer),
      'has_broker', v_broker,
      'erasure', reclaim.erasure_ledger(p_customer),
      'items', coalesce((SELECT json_agg(p.object ORDER BY p.n) FROM page p WHERE p.n <= p_limit), '[]'),
      'next', (SELECT (extract(epoch FROM p.at) * 1000000)::bigint || '-' || p.source || '-' || p.number FROM page p
        WHERE p.n = p_limit AND EXISTS (SELECT FROM page m WHERE m.n > p_limit))));
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_timeline FROM PUBLIC;
