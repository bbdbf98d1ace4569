-- The customers, beside its own, whose freeze ends a call: those of the calls it is chained to, and the one that began its
-- group call.
CREATE OR REPLACE FUNCTION reclaim.call_others_answering(p_master uuid, p_group uuid) RETURNS SETOF uuid
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  WITH RECURSIVE above(id, customer_id, master_call_id) AS (
      SELECT m.id, m.customer_id, m.master_call_id FROM reclaim.call_calls m WHERE m.id = p_master
    UNION
      SELECT m.id, m.customer_id, m.master_call_id FROM above a JOIN reclaim.call_calls m ON m.id = a.master_call_id)
  SELECT customer_id FROM above
  UNION
  (SELECT customer_id FROM reclaim.call_calls WHERE groupcall_id = p_group ORDER BY tm_create, id LIMIT 1)
$$;
REVOKE ALL ON FUNCTION reclaim.call_others_answering FROM PUBLIC;
