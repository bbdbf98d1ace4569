-- Clears what was written into rows of deleted customers after they had been cleared, in customer_customers or billing_accounts; a release
-- before may also have left it. Returns whose rows that were, and how many.
--
-- A trigger of the team's may put a value derived from others into a row whenever it is written. So a row counts, and is written,
-- only if clearing it changes what is in it.
CREATE OR REPLACE FUNCTION reclaim.clear_again(p_table text, p_ids uuid[]) RETURNS TABLE (customer_id uuid, rows bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_home regclass := reclaim.table_home(p_table);
  v_key text := CASE p_table WHEN 'customer_customers' THEN 'id' WHEN 'billing_accounts' THEN 'customer_id' END;
  v_rows text;
  v_dirty text;
  v_shown text;
  v_before jsonb;
  v_ids uuid[];
  v_some uuid[];
BEGIN
  SELECT string_agg(format('t.%I::text IS DISTINCT FROM CAST(%s AS %s)::text', c.name, c.value, c.type), ' OR '),
      string_agg(format('t.%I::text', c.name), ', ')
    INTO v_dirty, v_shown FROM reclaim.column_clearings(p_table) c WHERE c.value IS NOT NULL;
  IF v_dirty IS NULL THEN
    RETURN;
  END IF;
  v_rows := format('%s AS t WHERE t.%I = ANY ($1::%s[])', v_home, v_key,
    (SELECT format_type(a.atttypid, NULL) FROM pg_attribute a WHERE a.attrelid = v_home AND a.attname = v_key));
  EXECUTE format('SELECT array_agg(DISTINCT t.%I::uuid) FROM %s AND (%s)', v_key, v_rows, v_dirty) INTO v_ids USING p_ids;
  WHILE v_ids IS NOT NULL LOOP
    EXECUTE format('SELECT jsonb_object_agg(t.id, to_jsonb(ARRAY[%s])) FROM %s', v_shown, v_rows) INTO v_before USING v_ids;
    BEGIN
      PERFORM reclaim.clear_columns(p_table, v_ids);
      EXECUTE format('SELECT array_agg(DISTINCT t.%I::uuid) FROM %s AND to_jsonb(ARRAY[%s]) <> $2 -> t.id::text', v_key, v_rows, v_shown)
        INTO v_some USING v_ids, v_before;
      IF v_some IS NULL OR cardinality(v_some) < cardinality(v_ids) THEN
        RAISE EXCEPTION USING ERRCODE = 'RCL02', MESSAGE = 'some rows stay as they were';
      END IF;
      RETURN QUERY EXECUTE format('SELECT t.%I::uuid, count(*) FROM %s AND to_jsonb(ARRAY[%s]) <> $2 -> t.id::text GROUP BY 1', v_key, v_rows, v_shown)
        USING v_ids, v_before;
      RETURN;
    EXCEPTION WHEN SQLSTATE 'RCL02' THEN
      v_ids := v_some; -- the others are taken back, with what it wrote into their ledgers
    END;
  END LOOP;
END
$$;
REVOKE ALL ON FUNCTION reclaim.clear_again FROM PUBLIC;
