-- The condition for rows, as t, that are still to be erased: all of them; for a table whose rows stay, those that are not marked
-- or in which something is left that can be emptied and that the table has not refused. Only Reclaim's own tables know accounts;
-- they refuse nothing.
CREATE OR REPLACE FUNCTION reclaim.cascade_condition(p reclaim.cascade_participants) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT coalesce('(' || nullif(concat_ws(' OR ',
      CASE WHEN p.soft_delete_column IS NOT NULL
        THEN format('t.%1$I IS NULL OR t.%1$I > now() + interval ''1 year''', p.soft_delete_column) END,
      CASE WHEN p.scrub_columns <> '{}' THEN (
        SELECT string_agg(reclaim.cascade_dirty('t', c.name, c.type, c.value) || CASE WHEN p.id_of = 'account' THEN '' ELSE
          format(' AND NOT EXISTS (SELECT FROM reclaim.erasure_kept k %s = t.%I::uuid AND k.name = %L AND k.reason LIKE ''the table %%'' AND NOT k.again)',
            CASE p.id_of WHEN 'customer' THEN 'WHERE k.customer_id'
              ELSE 'JOIN reclaim.erasure_users u ON u.customer_id = k.customer_id WHERE u.user_id' END,
            p.customer_column, format('%s.%I', to_regclass(p.table_name), c.name)) END, ' OR ')
        FROM reclaim.cascade_clearings(p) c WHERE c.value IS NOT NULL) END), '') || ')',
    CASE WHEN reclaim.cascade_command(p) = 'DELETE' THEN 'true' ELSE 'false' END)
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_condition FROM PUBLIC;
