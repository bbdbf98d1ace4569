-- Whether an instance of this database publishes events; without a broker they are kept.
CREATE OR REPLACE FUNCTION reclaim.has_broker() RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RETURN EXISTS (SELECT FROM reclaim.instances i WHERE i.has_broker);
END
$$;
REVOKE ALL ON FUNCTION reclaim.has_broker FROM PUBLIC;
