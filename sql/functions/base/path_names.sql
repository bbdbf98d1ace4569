-- The names in a search path as configured: one is quoted, with quotes in it doubled, or else means its lower case.
CREATE OR REPLACE FUNCTION reclaim.path_names(p_path text) RETURNS text[]
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT ARRAY(SELECT coalesce(replace(part[1], '""', '"'), lower(part[2]))
    FROM regexp_matches(p_path, '"((?:[^"]|"")*)"|([^",\s]+)', 'g') AS part)
$$;
REVOKE ALL ON FUNCTION reclaim.path_names FROM PUBLIC;
