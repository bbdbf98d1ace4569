-- Empties rows of one ownership table, for reclaim.clear_ownership. p_mine: the condition for the rows, as o, of the users in $1.
-- All columns at once; one at a time when a rule of the table refuses that, so that it keeps as little as possible.
CREATE OR REPLACE FUNCTION reclaim.clear_owned(p_table regclass, p_mine text, p_columns text[], p_users uuid[], p_customers uuid[])
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
DECLARE
  v_dirty text; -- the condition that a row of them has something to empty
  v_others text := reclaim.ownership_others(p_table, (SELECT ownership FROM reclaim.installation));
  v_rows bigint;
  v_users uuid[];
  v_set text;
  v_column record;
  v_name text;
BEGIN
  EXECUTE format('SELECT count(*) FROM %s o WHERE %s', p_table, p_mine) INTO v_rows USING p_users;
  PERFORM reclaim.erasure_keep_none(p_customers, p_table::text);
  IF v_rows = 0 THEN
    RETURN;
  END IF;
  IF NOT reclaim.sees_all_rows(p_table, 'UPDATE') THEN
    PERFORM reclaim.erasure_keep_of_users(p_customers, p_users, p_table::text, 'table',
      format('Reclaim may not change it: %s', reclaim.row_security_mend(p_table, 'UPDATE')));
    RETURN;
  END IF;
  EXECUTE format('SELECT array_agg(DISTINCT who) FROM %s o CROSS JOIN LATERAL unnest(ARRAY[%s]) AS who WHERE (%s) AND (%s) AND who = ANY ($1)',
      p_table, (SELECT string_agg(format('o.%I::text::uuid', one), ', ') FROM unnest(p_columns) AS one), p_mine, v_others)
    INTO v_users USING p_users, p_users;
  IF v_users IS NOT NULL THEN
    PERFORM reclaim.erasure_keep_of_users(p_customers, v_users, p_table::text, 'table', 'other users refer to the row');
  END IF;
  SELECT string_agg(format('%I = %s', c.name, c.cleared), ', '), string_agg(reclaim.cascade_dirty('o', c.name, 'text', c.cleared), ' OR ')
    INTO v_set, v_dirty FROM reclaim.ownership_columns(p_table, p_columns) c
    WHERE c.cleared IS NOT NULL;
  BEGIN
    IF v_set IS NOT NULL THEN
      EXECUTE format('UPDATE %s o SET %s WHERE (%s) AND (%s) AND NOT (%s)', p_table, v_set, p_mine, v_dirty, v_others) USING p_users, p_users;
    END IF;
    v_set := NULL;
  EXCEPTION WHEN integrity_constraint_violation OR data_exception OR raise_exception OR syntax_error_or_access_rule_violation THEN
    IF SQLSTATE = '42501' THEN
      RAISE;
    END IF;
  END;
  FOR v_column IN SELECT * FROM reclaim.ownership_columns(p_table, p_columns) c WHERE v_set IS NOT NULL OR c.cleared IS NULL LOOP
    v_name := CASE WHEN v_column.cleared IS NULL THEN 'it has no value that could replace it' END;
    BEGIN
      IF v_column.cleared IS NOT NULL THEN
        EXECUTE format('UPDATE %s o SET %I = %s WHERE (%s) AND %s AND NOT (%s)', p_table, v_column.name, v_column.cleared, p_mine,
            reclaim.cascade_dirty('o', v_column.name, 'text', v_column.cleared), v_others) USING p_users, p_users;
      END IF;
    EXCEPTION WHEN integrity_constraint_violation OR data_exception OR raise_exception OR syntax_error_or_access_rule_violation THEN
      v_name := format('the table refuses to have it emptied (%s)', SQLSTATE);
    END;
    IF v_name IS NOT NULL THEN
      PERFORM reclaim.erasure_keep_of_users(p_customers, p_users, format('%s.%I', p_table, v_column.name), 'column', v_name);
    END IF;
  END LOOP;
END
$$;
REVOKE ALL ON FUNCTION reclaim.clear_owned FROM PUBLIC;
