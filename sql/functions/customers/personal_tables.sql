-- Tables of Supabase Auth with personal data of a user, beside auth.users.
CREATE OR REPLACE FUNCTION reclaim.personal_tables() RETURNS TABLE (name regclass, type text)
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT a.attrelid::regclass, format_type(a.atttypid, NULL)
  FROM unnest(ARRAY['identities', 'sessions', 'refresh_tokens', 'one_time_tokens', 'mfa_factors', 'flow_state']) AS known
  JOIN pg_attribute a ON a.attrelid = to_regclass('auth.' || known) AND a.attname = 'user_id' AND NOT a.attisdropped
$$;
REVOKE ALL ON FUNCTION reclaim.personal_tables FROM PUBLIC;
