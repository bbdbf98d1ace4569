-- For row-level security policies: reclaim.account_status_of the user of the request, as PostgREST tells it to the database and
-- auth.uid() reads it. Runs as its owner, so that the calling role needs no right to the tables.
CREATE OR REPLACE FUNCTION reclaim.account_status() RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RETURN reclaim.account_status_of(coalesce(nullif(current_setting('request.jwt.claim.sub', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')::uuid);
END
$$;
REVOKE ALL ON FUNCTION reclaim.account_status FROM PUBLIC;
