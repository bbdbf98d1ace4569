-- The number of the lock on an address. As its owner, like the others for other programs: EXECUTE on it is enough.
CREATE OR REPLACE FUNCTION reclaim.email_to_lock_id(p_email text) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$ SELECT reclaim.text_to_lock_id(reclaim.normalise_email(p_email)) $$;
REVOKE ALL ON FUNCTION reclaim.email_to_lock_id FROM PUBLIC;
