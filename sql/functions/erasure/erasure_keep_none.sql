-- Takes what the ledgers of these customers say is left of a table, 'schema.table', and of its columns: it is about to be cleared.
CREATE OR REPLACE FUNCTION reclaim.erasure_keep_none(p_customers uuid[], p_table text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  DELETE FROM reclaim.erasure_kept k WHERE k.customer_id = ANY (p_customers) AND (k.name = p_table OR starts_with(k.name, p_table || '.'));
END
$$;
REVOKE ALL ON FUNCTION reclaim.erasure_keep_none FROM PUBLIC;
