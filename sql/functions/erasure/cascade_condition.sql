-- The condition for rows that are still to be erased: all of them; for a table whose rows stay, those that are not marked or
-- not emptied (cascade_delete says with what).
CREATE OR REPLACE FUNCTION reclaim.cascade_condition(p reclaim.cascade_participants) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT coalesce('(' || nullif(concat_ws(' OR ',
      CASE WHEN p.soft_delete_column IS NOT NULL
        THEN format('%1$I IS NULL OR %1$I > now() + interval ''1 year''', p.soft_delete_column) END,
      (SELECT string_agg(format('%1$I::text NOT IN ('''', ''{}'') AND %1$I::text !~ ''^deleted_[0-9a-f-]{36}$''', one), ' OR ')
        FROM unnest(p.scrub_columns) AS one)), '') || ')', 'true')
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_condition FROM PUBLIC;
