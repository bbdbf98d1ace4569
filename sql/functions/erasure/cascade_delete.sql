-- One page of a table: erases rows of these customers, p.page_size at most; returns how many of which customer, and which
-- customers have rows left.
CREATE OR REPLACE FUNCTION reclaim.cascade_delete(p reclaim.cascade_participants, p_ids uuid[], OUT counted uuid[],
  OUT counts bigint[], OUT remaining uuid[])
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_table regclass := to_regclass(p.table_name);
  v_type text := reclaim.cascade_type(p);
  v_going text := reclaim.cascade_condition(p);
  v_act text := 'DELETE FROM ' || v_table;
BEGIN
  IF v_table IS NULL THEN
    RAISE undefined_table USING MESSAGE = format('there is no table %s', p.table_name);
  END IF;
  IF NOT reclaim.sees_all_rows(v_table, reclaim.cascade_command(p)) THEN
    RAISE insufficient_privilege USING MESSAGE = 'row-level security hides rows from this role';
  END IF;
  IF p.soft_delete_column IS NOT NULL THEN
    SELECT 'UPDATE ' || v_table || ' SET ' || string_agg(format('%I = %s', a.attname,
        CASE WHEN a.attname = p.soft_delete_column
          THEN format('CASE WHEN %1$I IS NULL OR %1$I > now() + interval ''1 year'' THEN clock_timestamp()%2$s ELSE %1$I END',
            a.attname, CASE WHEN a.atttypid = 'timestamp'::regtype THEN ' AT TIME ZONE ''UTC''' ELSE '' END)
          WHEN NOT a.attnotnull THEN 'NULL'
          WHEN a.atttypid IN ('json'::regtype, 'jsonb'::regtype) THEN '''{}''' ELSE '''''' END), ', ')
      INTO v_act FROM pg_attribute a
      WHERE a.attrelid = v_table AND a.attname = ANY (p.scrub_columns || p.soft_delete_column) AND NOT a.attisdropped;
  END IF;
  -- The customer's column is compared twice: in a partitioned table a ctid is not unique, and a row found by the ctid of
  -- another partition must be one of these customers' too.
  EXECUTE 'WITH page AS (' || v_act || format(' WHERE ctid = ANY (ARRAY(SELECT ctid FROM %1$s'
      ' WHERE %2$I = ANY ($1::%3$s[]) AND %4$s LIMIT $2)) AND %2$I = ANY ($1::%3$s[]) AND %4$s RETURNING %2$I::uuid AS customer)'
      ' SELECT array_agg(customer), array_agg(rows) FROM (SELECT customer, count(*) AS rows FROM page GROUP BY 1) AS sums',
      v_table, p.customer_column, v_type, v_going)
    INTO counted, counts USING p_ids, p.page_size;
  EXECUTE format('SELECT ARRAY(SELECT one FROM unnest($1) AS one WHERE EXISTS (SELECT FROM %s WHERE %I = one::%s AND %s))',
      v_table, p.customer_column, v_type, v_going)
    INTO remaining USING p_ids;
  IF counted IS NULL AND cardinality(remaining) > 0 THEN
    RAISE EXCEPTION USING ERRCODE = 'RCL01', MESSAGE = 'rows stay: a trigger or rule keeps them';
  END IF;
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_delete FROM PUBLIC;
