-- The language of a customer's mails, from a column `language` that the team's table has; null when it has none, or when this role
-- may not read it.
CREATE OR REPLACE FUNCTION reclaim.customer_language(p_id uuid) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_table regclass := coalesce((SELECT oid FROM pg_class WHERE oid = to_regclass('reclaim.customer_customers') AND relkind <> 'v'),
    to_regclass('public.customer_customers'));
  v_language text;
BEGIN
  IF EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = v_table AND a.attname = 'language' AND NOT a.attisdropped
      AND has_column_privilege(v_table, a.attnum, 'SELECT')) THEN
    EXECUTE format('SELECT language::text FROM %s WHERE id = $1', v_table) INTO v_language USING p_id;
  END IF;
  RETURN v_language;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_language FROM PUBLIC;
