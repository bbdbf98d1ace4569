-- 5 seconds, doubled each time, up to an hour.
CREATE OR REPLACE FUNCTION reclaim.billing_pause(p_tries integer) RETURNS interval
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog
AS $$ SELECT least(interval '5 seconds' * power(2, least(greatest(p_tries, 1) - 1, 20)), interval '1 hour') $$;
REVOKE ALL ON FUNCTION reclaim.billing_pause FROM PUBLIC;
