-- Which of these customers have rows at the participant that are still to be erased.
CREATE OR REPLACE FUNCTION reclaim.cascade_left(p reclaim.cascade_participants, p_ids uuid[]) RETURNS uuid[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog
AS $$
DECLARE
  v_table regclass := to_regclass(p.table_name);
  v_own record;
  v_left uuid[];
BEGIN
  IF v_table IS NULL THEN
    RAISE undefined_table USING MESSAGE = format('there is no table %s', p.table_name);
  END IF;
  IF NOT reclaim.sees_all_rows(v_table, reclaim.cascade_command(p)) THEN
    RAISE insufficient_privilege USING MESSAGE = 'row-level security hides rows from this role';
  END IF;
  v_own := reclaim.cascade_keys(p, p_ids);
  EXECUTE format('SELECT ARRAY(SELECT one FROM unnest($1) AS one WHERE EXISTS (SELECT FROM %s AS t WHERE t.%I = one::%s AND %s))',
      v_table, p.customer_column, reclaim.cascade_type(p), reclaim.cascade_condition(p))
    INTO v_left USING v_own.keys;
  IF p.id_of = 'customer' THEN
    RETURN v_left;
  END IF;
  RETURN ARRAY(SELECT DISTINCT o.customer FROM unnest(v_own.keys, v_own.customers) AS o (key, customer) WHERE o.key = ANY (v_left));
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_left FROM PUBLIC;
