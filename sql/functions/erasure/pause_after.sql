-- The pause before the next try: doubled from 2 to 600 seconds, with jitter.
CREATE OR REPLACE FUNCTION reclaim.pause_after(p_tries integer) RETURNS interval
LANGUAGE sql VOLATILE SET search_path = pg_catalog
AS $$ SELECT least(pg_catalog.power(2, least(p_tries, 20)), 600) * (0.75 + pg_catalog.random() / 2) * interval '1 second' $$;
REVOKE ALL ON FUNCTION reclaim.pause_after FROM PUBLIC;
