-- The languages of these customers' mails, in their order, from a column `language` that the team's table has; null when it has none,
-- or when this role may not read it.
CREATE OR REPLACE FUNCTION reclaim.customer_languages(p_ids uuid[]) RETURNS text[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_table regclass := coalesce((SELECT oid FROM pg_class WHERE oid = to_regclass('reclaim.customer_customers') AND relkind <> 'v'),
    to_regclass('public.customer_customers'));
  v_languages text[];
BEGIN
  IF EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = v_table AND a.attname = 'language' AND NOT a.attisdropped
      AND has_column_privilege(v_table, a.attnum, 'SELECT')) THEN
    EXECUTE format('SELECT array_agg(c.language::text ORDER BY i.place) FROM unnest($1) WITH ORDINALITY i (id, place)
      LEFT JOIN %s c ON c.id = i.id', v_table) INTO v_languages USING p_ids;
  END IF;
  RETURN v_languages;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_languages FROM PUBLIC;
