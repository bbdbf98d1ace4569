-- A text that another program may have written, as answers and events show it: whole while its JSON has at most 500 kB,
-- else its first 1000 characters and an ellipsis, so that every object has a bound. Without a SET clause, so that it is
-- inlined where it is called.
CREATE OR REPLACE FUNCTION reclaim.shown_text(p_text text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN pg_catalog.octet_length(p_text) <= 65536 THEN p_text
    WHEN pg_catalog.octet_length(pg_catalog.to_json(p_text)::text) <= 500000 THEN p_text
    ELSE pg_catalog."left"(p_text, 1000) || '…' END
$$;
REVOKE ALL ON FUNCTION reclaim.shown_text FROM PUBLIC;
