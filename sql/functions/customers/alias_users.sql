-- Replaces the personal data of users whose rows have to stay, and makes them unable to sign in. What other tables of
-- Supabase Auth have of them goes with reclaim.forget_sign_ins.
CREATE OR REPLACE FUNCTION reclaim.alias_users(p_users uuid[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_set text;
  v_count integer;
BEGIN
  IF NOT reclaim.sees_all_rows('auth.users', 'UPDATE') THEN
    RAISE insufficient_privilege USING MESSAGE = 'row-level security keeps this role from changing auth.users';
  END IF;
  SELECT string_agg(format('%I = %s', a.attname, p.cleared), ', ') INTO v_set FROM reclaim.personal_columns() p
    JOIN pg_attribute a ON a.attrelid = to_regclass('auth.users') AND a.attname = p.name AND NOT a.attisdropped;
  EXECUTE format('UPDATE auth.users SET %s WHERE id = ANY ($1)', v_set) USING p_users;
  GET DIAGNOSTICS v_count = ROW_COUNT;
  IF v_count <> cardinality(p_users) THEN
    RAISE insufficient_privilege USING MESSAGE = 'a trigger or rule keeps rows of auth.users from being changed';
  END IF;
END
$$;
REVOKE ALL ON FUNCTION reclaim.alias_users FROM PUBLIC;
