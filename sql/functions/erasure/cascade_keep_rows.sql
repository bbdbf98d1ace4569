-- Notes in the ledgers of these customers that rows of a table stay in which something is left, and in which columns: those of a
-- participant that marks its rows and was given some columns to empty, or none. '*' leaves nothing personal. What the ledgers said of
-- such rows before is forgotten; therefore all participants of this table are looked at.
CREATE OR REPLACE FUNCTION reclaim.cascade_keep_rows(p_table text, p_customers uuid[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
DECLARE
  v_table regclass := to_regclass(p_table);
  v_p reclaim.cascade_participants;
  v_own record;
  v_words text := 'its rows are marked as deleted and stay, with what they hold in ';
  v_names text;
  v_any text;
BEGIN
  DELETE FROM reclaim.erasure_kept k WHERE k.customer_id = ANY (p_customers) AND k.name = v_table::text AND starts_with(k.reason, v_words);
  FOR v_p IN SELECT * FROM reclaim.cascade_participants p WHERE p.table_name = p_table AND p.kind = 'table' AND p.enabled
      AND reclaim.cascade_command(p) = 'UPDATE' AND NOT '*' = ANY (p.scrub_columns) AND NOT starts_with(p.name, 'reclaim.') ORDER BY p.name LOOP
    SELECT string_agg(format('CASE WHEN bool_or(%s) THEN %L END', c.dirty, quote_ident(c.name)), ', ' ORDER BY c.number), string_agg(c.dirty, ' OR ')
      INTO v_names, v_any FROM (
        SELECT a.attnum AS number, a.attname AS name, reclaim.cascade_dirty('t', a.attname, NULL, NULL) AS dirty FROM pg_attribute a
        WHERE a.attrelid = v_table AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND a.attidentity = ''
          AND a.attname <> ALL (v_p.scrub_columns || v_p.customer_column || coalesce(v_p.soft_delete_column, ''))
          AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = v_table AND i.indisprimary AND a.attnum = ANY (i.indkey::smallint[]))) AS c;
    CONTINUE WHEN v_names IS NULL;
    v_own := reclaim.cascade_keys(v_p, p_customers);
    EXECUTE format('SELECT reclaim.erasure_keep(array_agg(k.customer), %L, ''table'', %L || k.names, k.rows) FROM (
        SELECT own.customer, concat_ws('', '', %s) AS names, count(*) AS rows FROM unnest($1, $2) AS own (key, customer)
          JOIN %s AS t ON t.%I = own.key::%s WHERE %s GROUP BY 1) AS k GROUP BY k.names, k.rows',
        v_table, v_words, v_names, v_table, v_p.customer_column, reclaim.cascade_type(v_p), v_any) USING v_own.keys, v_own.customers;
  END LOOP;
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_keep_rows FROM PUBLIC;
