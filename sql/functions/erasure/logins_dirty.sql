-- Which of these users have a row in auth.users with something in it that reclaim.alias_users does not leave there, as far as this
-- role may read it.
CREATE OR REPLACE FUNCTION reclaim.logins_dirty(p_users uuid[]) RETURNS uuid[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog
AS $$
DECLARE
  v_dirty uuid[];
BEGIN
  EXECUTE (SELECT format('SELECT array_agg(id ORDER BY id) FROM auth.users WHERE id = ANY ($1) AND (%s)',
      string_agg(format('%I::text IS DISTINCT FROM (%s)::text', a.attname, p.cleared), ' OR '))
    FROM reclaim.personal_columns() p
    JOIN pg_attribute a ON a.attrelid = to_regclass('auth.users') AND a.attname = p.name AND NOT a.attisdropped
      AND has_column_privilege(a.attrelid, a.attnum, 'SELECT')) INTO v_dirty USING p_users;
  RETURN coalesce(v_dirty, '{}');
END
$$;
REVOKE ALL ON FUNCTION reclaim.logins_dirty FROM PUBLIC;
