-- Whether this table was made by Reclaim and has no columns but its own: then no catalogue needs to be asked what is in it.
CREATE OR REPLACE FUNCTION reclaim.is_own_table(p_table text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  SELECT EXISTS (SELECT FROM reclaim.adopted_columns WHERE relation = 'reclaim.' || p_table AND column_name IS NULL)
    AND EXISTS (SELECT FROM pg_class WHERE oid = to_regclass('reclaim.' || p_table) AND relkind <> 'v')
    AND NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('reclaim.' || p_table) AND attnum > 0
      AND NOT attisdropped AND attname <> ALL (reclaim.own_columns(p_table)))
$$;
REVOKE ALL ON FUNCTION reclaim.is_own_table FROM PUBLIC;
