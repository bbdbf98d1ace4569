-- Customers by state, of those that p_text finds as reclaim.customers_find() does; null: of all. `held` and `due` are of the frozen
-- and active ones: under legal hold, and to be deleted within a week. Of users that are customers without a row only those found count.
CREATE OR REPLACE FUNCTION reclaim.customers_count(p_text text) RETURNS json
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
  v_found uuid[] := CASE WHEN p_text IS NOT NULL THEN ARRAY(SELECT reclaim.customers_find(NULL, false, p_text, NULL, 1000000)) END;
  v_week timestamptz := reclaim.now() + interval '168 hours';
BEGIN
  RETURN (SELECT json_build_object('active', count(*) FILTER (WHERE c.status = 'active') + coalesce(cardinality(v_found) - count(*), 0),
      'frozen', count(*) FILTER (WHERE c.status = 'frozen'), 'deleted', count(*) FILTER (WHERE c.status = 'deleted'),
      'held', count(*) FILTER (WHERE c.hold_at IS NOT NULL),
      'due', count(*) FILTER (WHERE c.status = 'frozen' AND c.hold_at IS NULL AND c.deletion_effective_at < v_week))
    FROM reclaim.customer_customers c
    WHERE v_found IS NULL OR c.id = ANY (v_found));
END
$$;
REVOKE ALL ON FUNCTION reclaim.customers_count FROM PUBLIC;
