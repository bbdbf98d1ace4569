-- The table itself: in schema public where a view in schema reclaim stands for an adopted one.
CREATE OR REPLACE FUNCTION reclaim.table_home(p_name text) RETURNS regclass
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT CASE WHEN c.relkind = 'v' THEN to_regclass('public.' || p_name) ELSE c.oid::regclass END
  FROM pg_class c WHERE c.oid = to_regclass('reclaim.' || p_name)
$$;
REVOKE ALL ON FUNCTION reclaim.table_home FROM PUBLIC;
