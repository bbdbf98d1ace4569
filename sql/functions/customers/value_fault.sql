-- Why a column cannot have this value (SQL over a row t with an id), as far as its type and the checks of the column alone
-- tell; null when it can. Executes what it is given, so it runs as its caller, reclaim.column_clearings.
CREATE OR REPLACE FUNCTION reclaim.value_fault(p_home regclass, p_number smallint, p_name text, p_type text, p_value text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_row text := format('SELECT CAST(%s AS %s) AS %I FROM (SELECT ''00000000-0000-4000-8000-000000000000''::uuid AS id) AS t',
    p_value, p_type, p_name);
  v_check record;
  v_holds boolean;
BEGIN
  -- Every type but a domain takes null.
  IF p_value <> 'NULL' OR (SELECT typtype FROM pg_type WHERE oid = to_regtype(p_type)) = 'd' THEN
    BEGIN
      EXECUTE format('SELECT FROM (%s OFFSET 0) AS one WHERE %I IS NULL', v_row, p_name);
    EXCEPTION WHEN OTHERS THEN
      RETURN 'no neutral value of ' || p_type;
    END;
  END IF;
  FOR v_check IN SELECT k.conname, pg_get_expr(k.conbin, k.conrelid) AS expression FROM pg_constraint k
      WHERE k.conrelid = p_home AND k.contype = 'c' AND k.conkey = ARRAY[p_number] ORDER BY k.conname LOOP
    BEGIN
      EXECUTE format('SELECT (%s) FROM (%s) AS one', v_check.expression, v_row) INTO v_holds;
    EXCEPTION WHEN OTHERS THEN
      v_holds := false;
    END;
    IF NOT v_holds THEN
      RETURN 'check constraint ' || v_check.conname;
    END IF;
  END LOOP;
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION reclaim.value_fault FROM PUBLIC;
