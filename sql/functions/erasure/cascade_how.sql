-- What becomes of a participant's rows: deleted; emptied, they stay without what is personal; marked, they only get a time; or reported
-- by a service. Of Reclaim's own tables that are marked, a trigger empties the rows.
CREATE OR REPLACE FUNCTION reclaim.cascade_how(p reclaim.cascade_participants) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog
AS $$
  SELECT CASE WHEN p.kind = 'remote' THEN 'reported' WHEN reclaim.cascade_command(p) = 'DELETE' THEN 'deleted'
    WHEN p.scrub_columns <> '{}' OR starts_with(p.name, 'reclaim.') THEN 'emptied' ELSE 'marked' END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_how FROM PUBLIC;
