-- Clears columns of which a constraint or a trigger refuses some: half of them, and half of those, until the refused ones are
-- left, then row by row. What is refused is kept, with the reason. p_sets: assignments, each beginning with its column.
-- Executes what it is given, so it runs as its caller, reclaim.clear_columns.
CREATE OR REPLACE FUNCTION reclaim.clear_columns_apart(p_home regclass, p_key text, p_ids uuid[], p_sets text[])
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_rows text := format('t.%I = ANY ($1::%s[])', p_key,
    (SELECT format_type(a.atttypid, NULL) FROM pg_attribute a WHERE a.attrelid = p_home AND a.attname = p_key));
  v_half integer := cardinality(p_sets) / 2;
  v_constraint text;
  v_name text;
  v_id uuid;
BEGIN
  IF p_sets = '{}' THEN
    RETURN;
  END IF;
  EXECUTE format('UPDATE %s AS t SET %s WHERE %s', p_home, array_to_string(p_sets, ', '), v_rows) USING p_ids;
EXCEPTION WHEN OTHERS THEN
  IF SQLSTATE ~ '^(40|53|54|55P|57|58|XX)' THEN
    RAISE;
  END IF;
  GET STACKED DIAGNOSTICS v_constraint = CONSTRAINT_NAME;
  IF v_half > 0 THEN
    PERFORM reclaim.clear_columns_apart(p_home, p_key, p_ids, p_sets[:v_half]);
    PERFORM reclaim.clear_columns_apart(p_home, p_key, p_ids, p_sets[v_half + 1:]);
  ELSIF cardinality(p_ids) > 1 THEN
    FOREACH v_id IN ARRAY p_ids LOOP
      PERFORM reclaim.clear_columns_apart(p_home, p_key, ARRAY[v_id], p_sets);
    END LOOP;
  ELSE
    v_name := left(p_sets[1], strpos(p_sets[1], ' = CAST(') - 1);
    EXECUTE format('SELECT reclaim.erasure_keep($1, %L, ''column'', %L, count(*)) FROM %s AS t WHERE %s AND t.%s IS NOT NULL
      HAVING count(*) > 0', p_home || '.' || (parse_ident(v_name))[1],
      coalesce('constraint ' || nullif(v_constraint, ''), 'refused with SQLSTATE ' || SQLSTATE), p_home, v_rows, v_name) USING p_ids;
  END IF;
END
$$;
REVOKE ALL ON FUNCTION reclaim.clear_columns_apart FROM PUBLIC;
