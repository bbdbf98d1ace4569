-- The languages of these customers' mails, in their order: from a column `language` that the team's table has, if there is one and this
-- role may read it, otherwise that of the owner's last freeze or recovery; null when neither is known.
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
  RETURN (SELECT array_agg(coalesce(nullif(v_languages[i.place], ''), t.language) ORDER BY i.place)
    FROM unnest(p_ids) WITH ORDINALITY i (id, place) LEFT JOIN reclaim.customer_told t ON t.customer_id = i.id);
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_languages FROM PUBLIC;
