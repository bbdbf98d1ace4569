-- "Not deleted" as some programs write it: a time far ahead, or at the beginning of the epoch.
-- Without a SET clause, so that it is inlined where it is called; the installation's time is read only where the real
-- time does not decide.
CREATE OR REPLACE FUNCTION reclaim.is_sentinel(p_time timestamptz) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT p_time < '1970-01-02 00:00:00+00'
    OR (p_time > pg_catalog.now() + interval '1 year' AND p_time > reclaim.now() + interval '1 year')
$$;
REVOKE ALL ON FUNCTION reclaim.is_sentinel FROM PUBLIC;
