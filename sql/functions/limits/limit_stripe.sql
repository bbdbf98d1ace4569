-- The second number of the advisory lock that a key is decided under: one of 1,024 stripes, and another 1,024 for keys
-- without a subject, as 'global' is, so that no subject shares a lock with a tier that counts everyone. Those come last in
-- the order in which locks are taken. Without a SET clause, so that it is inlined.
CREATE OR REPLACE FUNCTION reclaim.limit_stripe(p_key text) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN pg_catalog.strpos(p_key, ':') = 0 THEN 1024 ELSE 0 END + (pg_catalog.hashtext(p_key) & 1023)
$$;
REVOKE ALL ON FUNCTION reclaim.limit_stripe FROM PUBLIC;
