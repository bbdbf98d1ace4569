-- Tables of Supabase Auth with personal data of a user, beside auth.users. Found by name in the catalogue, so that a role which may
-- not use the schema gets no error.
CREATE OR REPLACE FUNCTION reclaim.personal_tables() RETURNS TABLE (name regclass, type text)
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT c.oid::regclass, format_type(a.atttypid, NULL)
  FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid
    AND c.relname IN ('identities', 'sessions', 'refresh_tokens', 'one_time_tokens', 'mfa_factors', 'flow_state')
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'user_id' AND NOT a.attisdropped
  WHERE n.nspname = 'auth'
$$;
REVOKE ALL ON FUNCTION reclaim.personal_tables FROM PUBLIC;
