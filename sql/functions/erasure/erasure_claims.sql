-- What is certified of erasures that are settled and not certified yet, p_limit at most, which it locks: the claims about the
-- customer, without what the program adds (src/erasure/prove.c). Only those whose line is in a journal on the disk. How a receipt came about is what its last fact
-- says. A receipt that is kept was not erased.
CREATE OR REPLACE FUNCTION reclaim.erasure_claims(p_limit integer, OUT customer_id uuid, OUT settled_at timestamptz,
  OUT completed_at timestamptz, OUT claims jsonb) RETURNS SETOF record
LANGUAGE sql VOLATILE SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
AS $$
  WITH due AS MATERIALIZED (
    SELECT e.*, coalesce(e.completed_at, reclaim.now()) AS complete_at FROM reclaim.erasures e
      WHERE e.settled_at IS NOT NULL AND e.certificate_id IS NULL AND e.journaled AND NOT EXISTS (
        SELECT FROM reclaim.erasure_certificates c WHERE c.customer_id = e.customer_id AND c.settled_at = e.settled_at)
        -- A participant may have been added while the last receipt came: see reclaim.cascade_resume.
        AND NOT EXISTS (SELECT FROM reclaim.cascade_receipts r WHERE r.customer_id = e.customer_id AND coalesce(r.status, '') NOT IN ('done', 'kept'))
      ORDER BY e.settled_at LIMIT p_limit FOR UPDATE SKIP LOCKED
  )
  SELECT e.customer_id, e.settled_at, e.complete_at, jsonb_strip_nulls(jsonb_build_object('sub', e.customer_id,
    'requested_at', reclaim.rfc3339(e.requested_at), 'completed_at', reclaim.rfc3339(e.complete_at),
    'replaces', (SELECT c.certificate_id FROM reclaim.erasure_certificates c WHERE c.customer_id = e.customer_id ORDER BY c.id DESC LIMIT 1),
    'address', CASE WHEN e.address_hash IS NOT NULL THEN jsonb_build_object('alg', 'SHA-256', 'hash', e.address_hash) END,
    'participants', coalesce((SELECT jsonb_agg(jsonb_build_object('name', r.participant, 'label', nullif(p.label, ''),
          'kind', coalesce(f.kind, 'unknown'), 'status', r.status, 'rows', r.rows, 'late_rows', nullif(r.late_rows, 0),
          'first_tried_at', reclaim.rfc3339(r.first_tried_at), 'done_at', reclaim.rfc3339(r.done_at),
          'how', coalesce(f.how, 'unknown'), 'reported_by', coalesce(f.reported_by, 'unknown')) ORDER BY r.participant)
        FROM reclaim.cascade_receipts r LEFT JOIN reclaim.cascade_participants p ON p.name = r.participant
          LEFT JOIN LATERAL (SELECT n.kind, n.how, n.reported_by FROM reclaim.receipt_facts n WHERE n.customer_id = r.customer_id
            AND n.participant = r.participant ORDER BY n.id DESC LIMIT 1) AS f ON true
        WHERE r.customer_id = e.customer_id AND r.status = 'done'), '[]'),
    'kept', coalesce((SELECT jsonb_agg(k.entry ORDER BY k.name) FROM (
        SELECT r.participant AS name, jsonb_build_object('name', r.participant, 'kind', coalesce(f.kind, 'unknown'),
            'reason', coalesce(r.error, 'not erased')) AS entry
          FROM reclaim.cascade_receipts r LEFT JOIN LATERAL (SELECT n.kind FROM reclaim.receipt_facts n WHERE n.customer_id = r.customer_id
            AND n.participant = r.participant ORDER BY n.id DESC LIMIT 1) AS f ON true
          WHERE r.customer_id = e.customer_id AND r.status = 'kept'
        UNION ALL
        SELECT n.name, jsonb_build_object('name', n.name, 'kind', n.kind, 'reason', n.reason, 'rows', nullif(n.rows, 0))
          FROM reclaim.erasure_kept n WHERE n.customer_id = e.customer_id) AS k), '[]')))
  FROM due e
$$;
REVOKE ALL ON FUNCTION reclaim.erasure_claims FROM PUBLIC;
