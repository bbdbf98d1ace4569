-- The tables of Supabase Auth with rows of users, found in the catalogue: those with a key to auth.users or a column user_id,
-- and those with a key to such a table whose rows do not go with it by themselves; and those that know only a user's address
-- (saml_relay_states), as long as auth.users has it. `condition` finds the rows of the users in $1; deeper ones come first. stays: a
-- user's row can be deleted without these rows going with it.
CREATE OR REPLACE FUNCTION reclaim.sign_in_tables() RETURNS TABLE (name regclass, condition text, stays boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  WITH RECURSIVE home AS (
    SELECT c.oid FROM pg_class c WHERE c.relnamespace = to_regnamespace('auth') AND c.relkind IN ('r', 'p')
      AND NOT c.relispartition AND c.oid <> to_regclass('auth.users')
  ), cascading AS ( -- reached from auth.users along keys that delete
    SELECT k.conrelid FROM pg_constraint k WHERE k.contype = 'f' AND k.confdeltype = 'c' AND k.confrelid = to_regclass('auth.users')
    UNION SELECT k.conrelid FROM cascading c JOIN pg_constraint k ON k.contype = 'f' AND k.confdeltype = 'c' AND k.confrelid = c.conrelid
  ), way AS (
    SELECT h.oid, format('%I = ANY ($1::%s[])', a.attname, format_type(a.atttypid, NULL)) AS condition,
      h.oid NOT IN (SELECT conrelid FROM cascading) AS stays, ARRAY[h.oid] AS path
    FROM home h JOIN pg_attribute a ON a.attrelid = h.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE a.attname = 'user_id' AND a.atttypid IN ('uuid'::regtype, 'text'::regtype, 'varchar'::regtype)
      OR EXISTS (SELECT FROM pg_constraint k WHERE k.contype = 'f' AND k.conrelid = h.oid AND k.conkey = ARRAY[a.attnum]
        AND k.confrelid = to_regclass('auth.users'))
    UNION ALL
    SELECT k.conrelid, format('(%s) IN (SELECT %s FROM %s WHERE %s)',
        (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY at.n) FROM unnest(k.conkey) WITH ORDINALITY AS at (num, n)
          JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = at.num),
        (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY at.n) FROM unnest(k.confkey) WITH ORDINALITY AS at (num, n)
          JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = at.num),
        w.oid::regclass, w.condition), true, w.path || k.conrelid
    FROM way w JOIN pg_constraint k ON k.contype = 'f' AND k.confrelid = w.oid AND k.confdeltype <> 'c' AND k.conparentid = 0
    JOIN home h ON h.oid = k.conrelid
    WHERE k.conrelid <> ALL (w.path) AND cardinality(w.path) < 6
  ), known AS (
    SELECT oid, condition, stays, cardinality(path) AS depth FROM way
    UNION ALL
    SELECT h.oid, format('lower(%I) = ANY (ARRAY(SELECT lower(u.email) FROM auth.users u WHERE u.id = ANY ($1)))', a.attname), true, 1
    FROM home h JOIN pg_attribute a ON a.attrelid = h.oid AND a.attname = 'for_email' AND NOT a.attisdropped
      AND a.atttypid IN ('text'::regtype, 'varchar'::regtype)
  )
  SELECT k.oid::regclass, k.condition, k.stays FROM known k ORDER BY k.depth DESC, k.oid, k.condition
$$;
REVOKE ALL ON FUNCTION reclaim.sign_in_tables FROM PUBLIC;
