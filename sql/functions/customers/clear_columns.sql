-- Clears what is personal in the rows of these customers, in customer_customers (which it deletes thereby) or billing_accounts, on
-- the table itself: the statement is made from the catalogue, once for all of them. What cannot be cleared, or is kept by decision,
-- is noted in the ledger and never stops a deletion. Returns how many rows it has cleared.
--
-- Runs as its owner, as the view does: the role that serves has no privileges on the team's table.
CREATE OR REPLACE FUNCTION reclaim.clear_columns(p_table text, p_ids uuid[]) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_home regclass := reclaim.table_home(p_table);
  v_key text := CASE p_table WHEN 'customer_customers' THEN 'id' WHEN 'billing_accounts' THEN 'customer_id' END;
  v_rows text;
  v_state text := ''; -- what else the rows get
  v_sets text[];
  v_kept text;
  v_watched boolean;
  v_before jsonb;
  v_deferred text;
  v_count integer;
BEGIN
  v_rows := format('t.%I = ANY ($1::%s[])', v_key,
    (SELECT format_type(a.atttypid, NULL) FROM pg_attribute a WHERE a.attrelid = v_home AND a.attname = v_key));
  IF p_table = 'customer_customers' THEN
    v_state := format('status = ''deleted'', tm_delete = coalesce(t.tm_delete, %L)', reclaim.now());
  END IF;
  -- A trigger of the team's may put a value back.
  v_watched := EXISTS (SELECT FROM pg_trigger g JOIN pg_proc f ON f.oid = g.tgfoid WHERE g.tgrelid = v_home AND NOT g.tgisinternal
    AND g.tgtype & 19 = 19 AND f.pronamespace <> 'reclaim'::regnamespace);
  SELECT coalesce(array_agg(format('%I = CAST(%s AS %s)', c.name, c.value, c.type)) FILTER (WHERE c.value IS NOT NULL), '{}'),
      string_agg(CASE WHEN c.value IS NULL THEN format('(%L, t.%I IS NOT NULL, %L)', c.name, c.name, c.reason)
        WHEN v_watched THEN format('(%L, to_jsonb(t.%I) = $2 -> t.id::text -> %1$L
            AND to_jsonb(t.%2$I) <> coalesce(to_jsonb(CAST(%s AS %s)), ''null''), %L)',
          c.name, c.name, c.value, c.type, 'a trigger of the table keeps it') END, ', ')
    INTO v_sets, v_kept FROM reclaim.column_clearings(p_table) c;
  IF v_watched THEN
    EXECUTE format('SELECT jsonb_object_agg(t.id, to_jsonb(t)) FROM %s AS t WHERE %s', v_home, v_rows) INTO v_before USING p_ids;
  END IF;
  -- What a constraint refuses must show here, not at the commit.
  SELECT string_agg(DISTINCT format('%I.%I', n.nspname, k.conname), ', ') INTO v_deferred FROM pg_constraint k
    JOIN pg_namespace n ON n.oid = k.connamespace WHERE k.condeferred AND v_home IN (k.conrelid, k.confrelid);
  IF v_deferred IS NOT NULL THEN
    EXECUTE format('SET CONSTRAINTS %s IMMEDIATE', v_deferred);
  END IF;
  PERFORM reclaim.erasure_keep_none(p_ids, v_home::text);
  IF v_state = '' AND v_sets = '{}' THEN
    v_count := 0;
  ELSE
    BEGIN
      EXECUTE format('UPDATE %s AS t SET %s WHERE %s', v_home,
        array_to_string(v_sets || array_remove(ARRAY[v_state], ''), ', '), v_rows) USING p_ids;
      GET DIAGNOSTICS v_count = ROW_COUNT;
    EXCEPTION WHEN OTHERS THEN
      IF SQLSTATE ~ '^(40|53|54|55P|57|58|XX)' THEN
        RAISE; -- it may go well another time
      END IF;
      PERFORM reclaim.clear_columns_apart(v_home, v_key, p_ids, v_sets);
      IF v_state <> '' THEN
        EXECUTE format('UPDATE %s AS t SET %s WHERE %s', v_home, v_state, v_rows) USING p_ids;
        GET DIAGNOSTICS v_count = ROW_COUNT;
      END IF;
    END;
  END IF;
  IF v_kept IS NOT NULL THEN
    EXECUTE format('SELECT reclaim.erasure_keep(array_agg(k.id), %L || k.name, ''column'', k.reason, k.rows)
      FROM (SELECT t.%I::uuid AS id, v.name, v.reason, count(*) AS rows
        FROM %s AS t CROSS JOIN LATERAL (VALUES %s) AS v (name, kept, reason)
        WHERE %s AND v.kept AND NOT EXISTS (SELECT FROM reclaim.erasure_kept e WHERE e.customer_id = t.%I::uuid AND e.name = %L || v.name)
        GROUP BY 1, 2, 3) AS k GROUP BY k.name, k.reason, k.rows',
      v_home || '.', v_key, v_home, v_kept, v_rows, v_key, v_home || '.') USING p_ids, v_before;
  END IF;
  RETURN v_count;
END
$$;
REVOKE ALL ON FUNCTION reclaim.clear_columns FROM PUBLIC;
