-- An address as Reclaim looks it up: white space off both ends, ASCII letters in lower case. The program's own
-- normalisation (src/base/email.c) and this one must agree; a test compares them.
CREATE OR REPLACE FUNCTION reclaim.normalise_email(p_email text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog
AS $$ SELECT lower(btrim(p_email, E' \t\n\r\f\x0B') COLLATE "C") $$;
REVOKE ALL ON FUNCTION reclaim.normalise_email FROM PUBLIC;
