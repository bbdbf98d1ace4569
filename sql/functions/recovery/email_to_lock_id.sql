-- The number of the lock on an address.
CREATE OR REPLACE FUNCTION reclaim.email_to_lock_id(p_email text) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog
AS $$ SELECT reclaim.text_to_lock_id(reclaim.normalise_email(p_email)) $$;
REVOKE ALL ON FUNCTION reclaim.email_to_lock_id FROM PUBLIC;
