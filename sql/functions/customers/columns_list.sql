-- The columns of both tables that Reclaim does not know, and those it knows but cannot clear: what was decided, and what a deletion does.
CREATE OR REPLACE FUNCTION reclaim.columns_list() RETURNS TABLE (
  table_name text, column_name text, type text, known boolean, decision text, deletion text, detail text)
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT reclaim.table_home(one)::text, c.name, c.type, c.known, c.decision, CASE WHEN c.value IS NULL THEN 'keeps' ELSE 'clears' END,
    coalesce(replace(c.value, 't.id', 'id'), c.reason)
  FROM unnest(ARRAY['customer_customers', 'billing_accounts']) AS one CROSS JOIN LATERAL reclaim.column_clearings(one) c
  WHERE NOT c.known OR c.value IS NULL ORDER BY one DESC, c.name
$$;
REVOKE ALL ON FUNCTION reclaim.columns_list FROM PUBLIC;
