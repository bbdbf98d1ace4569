-- Empties rows of which a table refuses something, one after the other, for reclaim.cascade_erase: a row at once, else each of its
-- columns alone, so that as little as possible is kept. A row that cannot even be marked is an error. p_rows: the condition for
-- the rows, as t, by the ids in $1; p_mark: the assignment that marks, or ''; p_sets: the others, each beginning with its column.
CREATE OR REPLACE FUNCTION reclaim.cascade_apart(p_table regclass, p_column text, p_rows text, p_mark text, p_sets text[], p_keys uuid[],
  p_page integer, OUT keys uuid[], OUT counts bigint[], OUT refused jsonb)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
DECLARE
  v_row record;
  v_set text;
  v_sets text[] := array_remove(ARRAY[nullif(p_mark, '')] || p_sets, NULL);
  v_done uuid[] := '{}';
  v_act text := format('UPDATE %s AS t SET %%s WHERE t.tableoid = $1 AND t.ctid = $2 RETURNING t.tableoid, t.ctid', p_table);
BEGIN
  refused := '[]';
  FOR v_row IN EXECUTE format('SELECT t.%I::uuid AS key, t.tableoid AS home, t.ctid AS place FROM %s AS t WHERE %s LIMIT $2 FOR UPDATE',
      p_column, p_table, p_rows) USING p_keys, p_page
  LOOP
    v_done := v_done || v_row.key;
    BEGIN
      EXECUTE format(v_act, array_to_string(v_sets, ', ')) USING v_row.home, v_row.place;
      CONTINUE;
    EXCEPTION WHEN integrity_constraint_violation OR data_exception OR raise_exception OR with_check_option_violation THEN
      NULL;
    END;
    FOREACH v_set IN ARRAY v_sets LOOP
      BEGIN
        EXECUTE format(v_act, v_set) INTO STRICT v_row.home, v_row.place USING v_row.home, v_row.place;
      EXCEPTION WHEN integrity_constraint_violation OR data_exception OR raise_exception OR with_check_option_violation THEN
        IF v_set = p_mark THEN
          RAISE;
        END IF;
        refused := refused || jsonb_build_object('key', v_row.key, 'name', (parse_ident(left(v_set, strpos(v_set, ' = CAST(') - 1)))[1],
          'reason', format('the table refuses to have it emptied (%s)', SQLSTATE));
      END;
    END LOOP;
  END LOOP;
  SELECT array_agg(sums.key), array_agg(sums.rows) INTO keys, counts
    FROM (SELECT one AS key, count(*) AS rows FROM unnest(v_done) AS one GROUP BY 1) AS sums;
  refused := (SELECT jsonb_agg(to_jsonb(k)) FROM (SELECT r.key, r.name, min(r.reason) AS reason, count(*) AS rows
    FROM jsonb_to_recordset(refused) AS r (key uuid, name text, reason text) GROUP BY 1, 2) AS k);
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_apart FROM PUBLIC;
