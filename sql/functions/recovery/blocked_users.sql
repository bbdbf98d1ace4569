-- Of these users, those whom a foreign key of another table keeps from being deleted, and for each a table with such rows;
-- and how many such keys there are at all. Tables that this role cannot look at are left to the deletion, which the key
-- itself stops.
CREATE OR REPLACE FUNCTION reclaim.blocked_users(p_users uuid[], p_owned text[], p_any_size boolean, OUT keys integer,
  OUT users uuid[], OUT tables text[])
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
  v_query text;
BEGIN
  SELECT count(*), string_agg(k.query, ' UNION ALL ') FILTER (WHERE k.lack IS NULL) INTO keys, v_query
    FROM reclaim.deletion_keys(p_owned, p_any_size) k;
  IF v_query IS NOT NULL AND cardinality(p_users) > 0 THEN
    EXECUTE format('SELECT array_agg(b.id), array_agg(b.home) FROM (SELECT a.id, min(a.home) AS home FROM (%s) a GROUP BY a.id) b',
      v_query) INTO users, tables USING p_users;
  END IF;
END
$$;
REVOKE ALL ON FUNCTION reclaim.blocked_users FROM PUBLIC;
