-- Columns of an adopted billing_accounts that look like balances and hold some, while balance_micros is 0 everywhere; null without.
CREATE OR REPLACE FUNCTION reclaim.billing_left_behind() RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog
AS $$
DECLARE
  v_table regclass := reclaim.table_home('billing_accounts');
  v_column text;
  v_found text[] := '{}';
  v_any boolean;
BEGIN
  IF v_table = to_regclass('reclaim.billing_accounts') OR EXISTS (SELECT FROM reclaim.billing_accounts WHERE balance_micros <> 0) THEN
    RETURN NULL;
  END IF;
  FOR v_column IN SELECT a.attname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid AND t.typcategory = 'N'
      WHERE a.attrelid = v_table AND a.attnum > 0 AND NOT a.attisdropped AND a.attname <> ALL (reclaim.own_columns('billing_accounts'))
        AND a.attname ~* 'balance|credit|amount|funds' ORDER BY a.attnum LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE %I::text !~ ''^[^1-9]*$'')', v_table, v_column) INTO v_any;
    IF v_any THEN
      v_found := v_found || v_column;
    END IF;
  END LOOP;
  RETURN nullif(array_to_string(v_found, ', '), '');
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_left_behind FROM PUBLIC;
