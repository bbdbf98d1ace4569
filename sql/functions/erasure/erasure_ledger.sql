-- The ledger of an erasure, as the API gives it. It stays when the customer's row is gone. What was left in place stands
-- among the participants with status kept and a reason. What a participant was that was removed is known from the facts.
CREATE OR REPLACE FUNCTION reclaim.erasure_ledger(p_customer uuid) RETURNS json
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT row_to_json(ledger) FROM (
    SELECT c.id AS customer_id,
      CASE WHEN e.customer_id IS NULL THEN 'not_started' WHEN e.completed_at IS NULL THEN 'pending' ELSE 'complete' END AS status,
      reclaim.rfc3339(e.requested_at) AS requested_at, reclaim.rfc3339(e.completed_at) AS completed_at,
      coalesce((SELECT json_agg(entry ORDER BY entry.name, entry.status) FROM (
        SELECT r.participant AS name, coalesce(p.label, '') AS label, coalesce(p.kind, (SELECT n.kind FROM reclaim.receipt_facts n
            WHERE n.customer_id = r.customer_id AND n.participant = r.participant ORDER BY n.id DESC LIMIT 1), 'unknown') AS kind, r.status, r.rows, r.tries,
          reclaim.rfc3339(r.first_tried_at) AS first_tried_at, reclaim.rfc3339(r.done_at) AS done_at, r.late_rows,
          reclaim.rfc3339(r.late_at) AS late_at, CASE WHEN r.status <> 'kept' THEN r.error END AS error,
          CASE WHEN r.status = 'kept' THEN r.error END AS reason
        FROM reclaim.cascade_receipts r LEFT JOIN reclaim.cascade_participants p ON p.name = r.participant
        WHERE r.customer_id = c.id
        UNION ALL
        SELECT k.name, '', k.kind, 'kept', k.rows, 0, NULL, NULL, 0, NULL, NULL, k.reason
        FROM reclaim.erasure_kept k WHERE k.customer_id = c.id) AS entry), '[]') AS participants
    FROM (SELECT id FROM reclaim.customer_row(p_customer)
        UNION SELECT customer_id FROM reclaim.erasures WHERE customer_id = p_customer) AS c
      LEFT JOIN reclaim.erasures e ON e.customer_id = c.id) AS ledger
$$;
REVOKE ALL ON FUNCTION reclaim.erasure_ledger FROM PUBLIC;
