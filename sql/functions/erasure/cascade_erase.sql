-- Erases rows of a table by the ids in its column, p.page_size at most; returns how many of which id, and how many in all.
-- p_customers: whose each id is. p_apart: row by row, and where the table refuses a row, column by column. What the table
-- refuses, or fills again, is kept, and the ledger says so.
CREATE OR REPLACE FUNCTION reclaim.cascade_erase(p reclaim.cascade_participants, p_keys uuid[], p_customers uuid[],
  p_apart boolean, OUT keys uuid[], OUT counts bigint[], OUT erased bigint)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
DECLARE
  v_table regclass := to_regclass(p.table_name);
  v_rows text := format('t.%I = ANY ($1::%s[]) AND %s', p.customer_column, reclaim.cascade_type(p), reclaim.cascade_condition(p));
  v_act text := 'DELETE FROM ' || v_table || ' AS t';
  v_mark text := '';
  v_sets text[] := '{}';
  v_again text; -- columns that are not what they were set to
  v_refused jsonb;
BEGIN
  IF reclaim.cascade_command(p) = 'UPDATE' THEN
    SELECT coalesce(format('%1$I = CASE WHEN t.%1$I IS NULL OR t.%1$I > now() + interval ''1 year'' THEN clock_timestamp()%2$s ELSE t.%1$I END',
        a.attname, CASE WHEN a.atttypid = 'timestamp'::regtype THEN ' AT TIME ZONE ''UTC''' END), '')
      INTO v_mark FROM pg_attribute a WHERE a.attrelid = v_table AND a.attname = p.soft_delete_column AND NOT a.attisdropped;
    SELECT coalesce(array_agg(format('%I = CAST(%s AS %s)', c.name, c.value, c.type)), '{}'),
        string_agg(format('CASE WHEN %s THEN %L END', reclaim.cascade_dirty('t', c.name, c.type, c.value), c.name), ', ')
      INTO v_sets, v_again FROM reclaim.cascade_clearings(p) c WHERE c.value IS NOT NULL;
    v_act := format('UPDATE %s AS t SET %s', v_table, array_to_string(array_remove(ARRAY[nullif(v_mark, '')] || v_sets, NULL), ', '));
  END IF;
  IF p_apart THEN
    SELECT a.keys, a.counts, a.refused INTO keys, counts, v_refused
      FROM reclaim.cascade_apart(v_table, p.customer_column, v_rows, v_mark, v_sets, p_keys, p.page_size) a;
  ELSE
    -- The key is compared twice: in a partitioned table a ctid is not unique, and a row found by the ctid of another
    -- partition must be one of these customers' too.
    EXECUTE format('WITH page AS (%s WHERE t.ctid = ANY (ARRAY(SELECT t.ctid FROM %s AS t WHERE %s LIMIT $2)) AND %3$s'
        ' RETURNING t.%I::uuid AS key, %s AS again), sums AS (SELECT key, count(*) AS rows FROM page GROUP BY 1)'
        ' SELECT (SELECT array_agg(key) FROM sums), (SELECT array_agg(rows) FROM sums),'
        ' (SELECT jsonb_agg(jsonb_build_object(''key'', k.key, ''name'', k.name, ''rows'', k.rows)) FROM'
        ' (SELECT key, name, count(*) AS rows FROM page, unnest(again) AS name WHERE name IS NOT NULL GROUP BY 1, 2) AS k)',
        v_act, v_table, v_rows, p.customer_column, coalesce('ARRAY[' || v_again || ']::text[]', 'NULL::text[]'))
      INTO keys, counts, v_refused USING p_keys, p.page_size;
  END IF;
  erased := coalesce((SELECT sum(one) FROM unnest(counts) AS one), 0);
  PERFORM reclaim.erasure_keep(array_agg(DISTINCT own.customer), format('%s.%I', v_table, r.name), 'column',
      coalesce(r.reason, 'the table fills it again when it is emptied'), r.rows)
    FROM jsonb_to_recordset(v_refused) AS r (key uuid, name text, rows bigint, reason text)
    JOIN unnest(p_keys, p_customers) AS own (key, customer) ON own.key = r.key GROUP BY r.name, r.reason, r.rows;
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_erase FROM PUBLIC;
