-- Text columns of an adopted table that Reclaim does not know and whose names suggest secrets or personal data, as a list
-- for SET; null when there are none.
CREATE OR REPLACE FUNCTION reclaim.customer_columns_to_clear() RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT string_agg(format('%I = %L', a.attname, CASE WHEN a.attnotnull THEN '' END), ', ') FROM pg_attribute a
  WHERE a.attrelid = (SELECT CASE relkind WHEN 'v' THEN to_regclass('public.customer_customers') ELSE oid END FROM pg_class
      WHERE oid = to_regclass('reclaim.customer_customers'))
    AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND a.atttypid IN ('text'::regtype, 'varchar'::regtype)
    AND a.attname ~ '(secret|password|token|username|first_?name|last_?name|phone|mail|fax|street|city|postal|birth)'
    AND a.attname NOT IN ('email', 'phone_number')
$$;
REVOKE ALL ON FUNCTION reclaim.customer_columns_to_clear FROM PUBLIC;
