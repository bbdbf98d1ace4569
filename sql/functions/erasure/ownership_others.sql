-- The condition under which a row of an ownership table, as o, belongs to somebody else too: another column of it, or a row
-- that refers to it, names a user who is not in $2 and whose login is there, or it is a live customer that refers to it.
CREATE OR REPLACE FUNCTION reclaim.ownership_others(p_table regclass, p_owned text[]) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  WITH user_column AS (
    SELECT a.attrelid, a.attname FROM pg_constraint k JOIN pg_attribute a ON a.attrelid = k.conrelid AND k.conkey = ARRAY[a.attnum]
      WHERE k.contype = 'f' AND k.confrelid = to_regclass('auth.users')
    UNION
    SELECT a.attrelid, a.attname FROM unnest(p_owned) AS one CROSS JOIN LATERAL string_to_array(one, '.') AS part
      JOIN pg_attribute a ON a.attrelid = to_regclass(format('%I.%I', part[1], part[2])) AND a.attname = part[3] AND NOT a.attisdropped
  ), named AS (
    SELECT u.attrelid, u.attname, '%1$s.%2$I::text <> ALL ($2::text[]) AND EXISTS (SELECT FROM auth.users u'
      ' WHERE u.id = %1$s.%2$I::text::uuid AND u.deleted_at IS NULL)' AS test FROM user_column u
  )
  SELECT coalesce(string_agg('(' || other.test || ')', ' OR '), 'false') FROM (
    SELECT format(n.test, 'o', n.attname) FROM named n WHERE n.attrelid = p_table
    UNION ALL
    SELECT format('EXISTS (SELECT FROM %s r WHERE %s AND %s)', k.conrelid::regclass, reclaim.key_condition(k.oid, 'o', 'r'),
        format(n.test, 'r', n.attname))
      FROM pg_constraint k JOIN named n ON n.attrelid = k.conrelid
      WHERE k.contype = 'f' AND k.confrelid = p_table AND k.conparentid = 0
    UNION ALL
    SELECT format('EXISTS (SELECT FROM %s r WHERE %s AND r.status::text <> ''deleted'')', k.conrelid::regclass,
        reclaim.key_condition(k.oid, 'o', 'r'))
      FROM pg_constraint k WHERE k.contype = 'f' AND k.confrelid = p_table AND k.conrelid = reclaim.table_home('customer_customers')
  ) AS other (test)
$$;
REVOKE ALL ON FUNCTION reclaim.ownership_others FROM PUBLIC;
