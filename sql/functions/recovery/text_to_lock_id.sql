-- The first eight bytes of a SHA-256, as a bigint for PostgreSQL's advisory locks.
CREATE OR REPLACE FUNCTION reclaim.text_to_lock_id(p_text text) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog
AS $$ SELECT ('x' || encode(substr(sha256(convert_to(p_text, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint $$;
REVOKE ALL ON FUNCTION reclaim.text_to_lock_id FROM PUBLIC;
