-- Times as the API writes them.
CREATE OR REPLACE FUNCTION reclaim.rfc3339(p_time timestamptz) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
AS $$ SELECT pg_catalog.to_char(p_time AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') $$;
REVOKE ALL ON FUNCTION reclaim.rfc3339 FROM PUBLIC;
