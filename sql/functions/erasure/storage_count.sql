-- How many objects these users have in a participant's folders, p_most at most, for the preview; null where this role may not read
-- the table of Supabase Storage.
CREATE OR REPLACE FUNCTION reclaim.storage_count(p reclaim.cascade_participants, p_users uuid[], p_most integer) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog
AS $$
DECLARE
  v_table regclass := to_regclass('storage.objects');
  v_count bigint;
BEGIN
  IF v_table IS NULL OR NOT has_schema_privilege('storage', 'USAGE') OR NOT has_table_privilege(v_table, 'SELECT')
      OR NOT reclaim.sees_all_rows(v_table, 'SELECT') THEN
    RETURN NULL;
  END IF;
  IF p_users = '{}' THEN
    RETURN 0;
  END IF;
  -- With the prefixes as constants the index for prefixes serves.
  EXECUTE (SELECT format('SELECT count(*) FROM (SELECT FROM %s WHERE bucket_id = %L AND (%s) LIMIT %s) AS part', v_table, p.bucket,
      string_agg(format('name LIKE %L', regexp_replace(replace(p.prefix, '{user}', one::text), '([%_\\])', '\\\1', 'g') || '%'), ' OR '), p_most)
    FROM unnest(p_users) AS one) INTO v_count;
  RETURN v_count;
END
$$;
REVOKE ALL ON FUNCTION reclaim.storage_count FROM PUBLIC;
