-- The condition for rows that are still to be erased: all of them; for a table whose rows are only marked, those that are
-- not marked or not emptied.
CREATE OR REPLACE FUNCTION reclaim.cascade_condition(p reclaim.cascade_participants) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT CASE WHEN p.soft_delete_column IS NULL THEN 'true'
    ELSE format('(%1$I IS NULL OR %1$I > now() + interval ''1 year''', p.soft_delete_column)
      || coalesce((SELECT string_agg(format(' OR %I::text NOT IN ('''', ''{}'')', one), '') FROM unnest(p.scrub_columns) AS one), '')
      || ')' END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_condition FROM PUBLIC;
