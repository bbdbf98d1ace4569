-- The time that billing goes by. A function of its own, so that tests can move it.
CREATE OR REPLACE FUNCTION reclaim.billing_clock() RETURNS timestamptz
LANGUAGE sql VOLATILE SET search_path = pg_catalog
AS 'SELECT clock_timestamp()';
REVOKE ALL ON FUNCTION reclaim.billing_clock FROM PUBLIC;
