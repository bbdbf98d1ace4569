-- The tables of RECLAIM_OWNERSHIP that are there: their columns with users, and the condition for the rows, as o, of the users in
-- $1. p_all: all of them; else only those from which the deletion of a user takes the user's id, or where no key has it.
CREATE OR REPLACE FUNCTION reclaim.ownership_tables(p_all boolean) RETURNS TABLE (name regclass, columns text[], mine text)
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT c.oid::regclass, array_agg(a.attname::text),
    string_agg(format('o.%I = ANY ($1::%s[])', a.attname, format_type(a.atttypid, NULL)), ' OR ')
  FROM unnest((SELECT i.ownership FROM reclaim.installation i)) AS one CROSS JOIN LATERAL string_to_array(one, '.') AS part
  JOIN pg_class c ON c.oid = to_regclass(format('%I.%I', part[1], part[2])) AND c.relkind IN ('r', 'p')
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = part[3] AND NOT a.attisdropped
  WHERE p_all OR NOT EXISTS (SELECT FROM pg_constraint k WHERE k.contype = 'f' AND k.conrelid = c.oid AND k.conkey = ARRAY[a.attnum]
    AND k.confrelid = to_regclass('auth.users') AND k.confdeltype IN ('a', 'r', 'c'))
  GROUP BY c.oid ORDER BY c.oid
$$;
REVOKE ALL ON FUNCTION reclaim.ownership_tables FROM PUBLIC;
