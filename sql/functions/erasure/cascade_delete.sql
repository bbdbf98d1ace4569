-- One page of a table: erases rows of these customers, p.page_size at most; returns how many of which customer, and which
-- customers have rows left. What is not emptied, or what the table refuses to have emptied, stands in the ledger.
CREATE OR REPLACE FUNCTION reclaim.cascade_delete(p reclaim.cascade_participants, p_ids uuid[], OUT counted uuid[],
  OUT counts bigint[], OUT remaining uuid[])
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_table regclass := to_regclass(p.table_name);
  v_own record;
  v_page record;
BEGIN
  IF v_table IS NULL THEN
    RAISE undefined_table USING MESSAGE = format('there is no table %s', p.table_name);
  END IF;
  IF NOT reclaim.sees_all_rows(v_table, reclaim.cascade_command(p)) THEN
    RAISE insufficient_privilege USING MESSAGE = 'row-level security hides rows from this role';
  END IF;
  v_own := reclaim.cascade_keys(p, p_ids);
  counted := '{}';
  counts := '{}';
  -- Twice, since other programs may write meanwhile: a page that was not full leaves no rows, unless something keeps them.
  FOR v_try IN 1 .. 2 LOOP
    BEGIN
      v_page := reclaim.cascade_erase(p, v_own.keys, v_own.customers, false);
    EXCEPTION WHEN integrity_constraint_violation OR data_exception OR raise_exception OR with_check_option_violation THEN
      IF p.scrub_columns = '{}' OR cardinality(p_ids) > 1 THEN
        RAISE; -- for each of these customers alone
      END IF;
      v_page := reclaim.cascade_erase(p, v_own.keys, v_own.customers, true);
    END;
    SELECT coalesce(array_agg(sums.customer), '{}'), coalesce(array_agg(sums.rows), '{}') INTO counted, counts FROM (
      SELECT part.customer, sum(part.rows)::bigint AS rows FROM (
        SELECT o.customer, n.rows FROM unnest(v_page.keys, v_page.counts) AS n (key, rows)
          JOIN (SELECT DISTINCT ON (key) key, customer FROM unnest(v_own.keys, v_own.customers) AS own (key, customer)
            ORDER BY key, customer) AS o ON o.key = n.key
        UNION ALL SELECT * FROM unnest(counted, counts)) AS part (customer, rows) GROUP BY 1) AS sums;
    remaining := reclaim.cascade_left(p, p_ids);
    EXIT WHEN remaining = '{}' OR v_page.erased >= p.page_size;
    IF v_try = 2 THEN
      RAISE EXCEPTION USING ERRCODE = 'RCL01', MESSAGE = 'rows stay: a trigger or rule keeps them';
    END IF;
  END LOOP;
  IF reclaim.cascade_command(p) = 'DELETE' THEN
    IF counted <> '{}' THEN -- it may have kept rows of them before it was to delete them
      PERFORM reclaim.cascade_keep_rows(p.table_name, ARRAY(SELECT unnest(counted) EXCEPT SELECT unnest(remaining)));
    END IF;
  ELSIF NOT starts_with(p.name, 'reclaim.') THEN -- of its own tables Reclaim keeps nothing personal
    PERFORM reclaim.cascade_keep(p, v_own.keys, v_own.customers, remaining);
  END IF;
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_delete FROM PUBLIC;
