-- How long a customer frozen now can be recovered.
CREATE OR REPLACE FUNCTION reclaim.grace() RETURNS interval
LANGUAGE plpgsql STABLE SET search_path = pg_catalog SET jit = off
AS $$ BEGIN RETURN (SELECT grace FROM reclaim.installation); END $$;
REVOKE ALL ON FUNCTION reclaim.grace FROM PUBLIC;
