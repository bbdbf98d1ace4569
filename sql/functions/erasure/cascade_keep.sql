-- Notes in the ledgers of customers that have no rows left to erase what is kept of a table whose rows stay: columns that cannot be
-- emptied, and those that are not to be emptied; what such a table kept of them before is forgotten. p_keys: the ids by which it knows them.
CREATE OR REPLACE FUNCTION reclaim.cascade_keep(p reclaim.cascade_participants, p_keys uuid[], p_customers uuid[], p_remaining uuid[])
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
DECLARE
  v_table regclass := to_regclass(p.table_name);
  v_kept text;
BEGIN
  DELETE FROM reclaim.erasure_kept k WHERE k.customer_id = ANY (p_customers) AND NOT k.customer_id = ANY (p_remaining)
    AND starts_with(k.name, v_table || '.') AND (k.again OR k.reason NOT LIKE 'the table %');
  SELECT string_agg(format('(%L, %s, %L)', format('%s.%I', v_table, c.name), reclaim.cascade_dirty('t', c.name, c.type, NULL), c.reason), ', ')
    INTO v_kept FROM reclaim.cascade_clearings(p) c WHERE c.value IS NULL;
  IF v_kept IS NOT NULL THEN
    EXECUTE format('SELECT reclaim.erasure_keep(array_agg(k.customer), k.name, ''column'', k.reason, k.rows) FROM (
        SELECT own.customer, v.name, v.reason, count(*) AS rows FROM unnest($1, $2) AS own (key, customer)
          JOIN %s AS t ON t.%I = own.key::%s CROSS JOIN LATERAL (VALUES %s) AS v (name, kept, reason)
        WHERE v.kept AND NOT own.customer = ANY ($3) GROUP BY 1, 2, 3) AS k GROUP BY k.name, k.reason, k.rows',
        v_table, p.customer_column, reclaim.cascade_type(p), v_kept) USING p_keys, p_customers, p_remaining;
  END IF;
  PERFORM reclaim.cascade_keep_rows(p.table_name, ARRAY(SELECT unnest(p_customers) EXCEPT SELECT unnest(p_remaining)));
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_keep FROM PUBLIC;
