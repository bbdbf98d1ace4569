-- The time that limits use. A function of its own, so that tests can move it.
CREATE OR REPLACE FUNCTION reclaim.limit_clock() RETURNS timestamptz
LANGUAGE sql VOLATILE SET search_path = pg_catalog
AS 'SELECT clock_timestamp()';
REVOKE ALL ON FUNCTION reclaim.limit_clock FROM PUBLIC;
