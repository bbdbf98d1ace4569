-- Notes for the ledgers of these customers what is left in place: p_name 'schema.table' or 'schema.table.column', p_kind table
-- or column, p_reason a sentence without personal data.
CREATE OR REPLACE FUNCTION reclaim.erasure_keep(p_customers uuid[], p_name text, p_kind text, p_reason text, p_rows bigint DEFAULT 1)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  INSERT INTO reclaim.erasure_kept AS k (customer_id, name, kind, reason, rows)
    SELECT DISTINCT one, p_name, p_kind, p_reason, p_rows FROM unnest(p_customers) AS one ORDER BY one
    ON CONFLICT (customer_id, name) DO UPDATE SET kind = excluded.kind, reason = excluded.reason, rows = excluded.rows, again = false
      WHERE k.again OR (k.kind, k.reason, k.rows) IS DISTINCT FROM (excluded.kind, excluded.reason, excluded.rows);
END
$$;
REVOKE ALL ON FUNCTION reclaim.erasure_keep FROM PUBLIC;
