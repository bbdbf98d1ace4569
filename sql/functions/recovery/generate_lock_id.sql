-- As email_to_lock_id, with a name space, for locks of other kinds.
CREATE OR REPLACE FUNCTION reclaim.generate_lock_id(p_namespace text, p_key text) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$ SELECT reclaim.text_to_lock_id(p_namespace || ':' || reclaim.normalise_email(p_key)) $$;
REVOKE ALL ON FUNCTION reclaim.generate_lock_id FROM PUBLIC;
