-- One page of a table: erases rows of these customers, p.page_size at most; returns how many of which customer, and which
-- customers have rows left. A column that is emptied gets null, or '' or {} where it must not be null, or an alias where it
-- must also be unique.
CREATE OR REPLACE FUNCTION reclaim.cascade_delete(p reclaim.cascade_participants, p_ids uuid[], OUT counted uuid[],
  OUT counts bigint[], OUT remaining uuid[])
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_table regclass := to_regclass(p.table_name);
  v_own record;
  v_act text := 'DELETE FROM ' || v_table;
BEGIN
  IF v_table IS NULL THEN
    RAISE undefined_table USING MESSAGE = format('there is no table %s', p.table_name);
  END IF;
  IF NOT reclaim.sees_all_rows(v_table, reclaim.cascade_command(p)) THEN
    RAISE insufficient_privilege USING MESSAGE = 'row-level security hides rows from this role';
  END IF;
  v_own := reclaim.cascade_keys(p, p_ids);
  IF reclaim.cascade_command(p) = 'UPDATE' THEN
    SELECT 'UPDATE ' || v_table || ' SET ' || string_agg(format('%I = %s', a.attname,
        CASE WHEN a.attname = p.soft_delete_column
          THEN format('CASE WHEN %1$I IS NULL OR %1$I > now() + interval ''1 year'' THEN clock_timestamp()%2$s ELSE %1$I END',
            a.attname, CASE WHEN a.atttypid = 'timestamp'::regtype THEN ' AT TIME ZONE ''UTC''' ELSE '' END)
          WHEN NOT a.attnotnull THEN 'NULL'
          WHEN a.atttypid IN ('json'::regtype, 'jsonb'::regtype) THEN '''{}'''
          WHEN EXISTS (SELECT FROM pg_index i WHERE i.indrelid = v_table AND i.indisunique AND a.attnum = ANY (i.indkey))
            THEN '''deleted_'' || gen_random_uuid()' ELSE '''''' END), ', ')
      INTO v_act FROM pg_attribute a
      WHERE a.attrelid = v_table AND (a.attname = ANY (p.scrub_columns) OR a.attname = p.soft_delete_column) AND NOT a.attisdropped;
  END IF;
  -- The key is compared twice: in a partitioned table a ctid is not unique, and a row found by the ctid of another
  -- partition must be one of these customers' too.
  EXECUTE 'WITH page AS (' || v_act || format(' WHERE ctid = ANY (ARRAY(SELECT ctid FROM %1$s'
      ' WHERE %2$I = ANY ($1::%3$s[]) AND %4$s LIMIT $2)) AND %2$I = ANY ($1::%3$s[]) AND %4$s RETURNING %2$I::uuid AS key)'
      ' SELECT array_agg(key), array_agg(rows) FROM (SELECT key, count(*) AS rows FROM page GROUP BY 1) AS sums',
      v_table, p.customer_column, reclaim.cascade_type(p), reclaim.cascade_condition(p))
    INTO counted, counts USING v_own.keys, p.page_size;
  IF p.id_of <> 'customer' AND counted IS NOT NULL THEN
    SELECT array_agg(sums.customer), array_agg(sums.rows) INTO counted, counts FROM (
      SELECT o.customer, sum(n.rows)::bigint AS rows FROM unnest(counted, counts) AS n (key, rows)
        JOIN (SELECT DISTINCT ON (key) key, customer FROM unnest(v_own.keys, v_own.customers) AS own (key, customer)
          ORDER BY key, customer) AS o ON o.key = n.key GROUP BY 1) AS sums;
  END IF;
  remaining := reclaim.cascade_left(p, p_ids);
  IF counted IS NULL AND cardinality(remaining) > 0 THEN
    RAISE EXCEPTION USING ERRCODE = 'RCL01', MESSAGE = 'rows stay: a trigger or rule keeps them';
  END IF;
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_delete FROM PUBLIC;
