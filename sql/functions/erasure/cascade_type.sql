-- The type as which a customer's id is compared with the table's column.
CREATE OR REPLACE FUNCTION reclaim.cascade_type(p reclaim.cascade_participants) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT CASE atttypid WHEN 'uuid'::regtype THEN 'uuid' ELSE 'text' END FROM pg_attribute
  WHERE attrelid = to_regclass(p.table_name) AND attname = p.customer_column AND NOT attisdropped
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_type FROM PUBLIC;
