-- Every live call that ends when this customer is frozen or deleted: its own, including its legs in conferences but not
-- those of others; the calls of group calls that it began; and calls chained to any of them.
CREATE OR REPLACE FUNCTION reclaim.calls_of(p_customer uuid) RETURNS SETOF uuid
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  WITH RECURSIVE own AS (
      SELECT c.id, c.groupcall_id FROM reclaim.call_calls c WHERE c.customer_id = p_customer AND c.status <> 'hangup'
    UNION -- of a group call it began, its own part may have ended before the others
      SELECT c.id, c.groupcall_id FROM reclaim.call_calls b JOIN reclaim.call_calls c ON c.groupcall_id = b.groupcall_id
        WHERE b.customer_id = p_customer AND b.groupcall_id IS NOT NULL AND c.status <> 'hangup'
          AND p_customer = (SELECT f.customer_id FROM reclaim.call_calls f WHERE f.groupcall_id = b.groupcall_id
                            ORDER BY f.tm_create, f.id LIMIT 1)),
  chained(id) AS (
      SELECT id FROM own
    UNION
      SELECT c.id FROM chained m JOIN reclaim.call_calls c ON c.master_call_id = m.id AND c.status <> 'hangup')
  SELECT id FROM chained
$$;
REVOKE ALL ON FUNCTION reclaim.calls_of FROM PUBLIC;
