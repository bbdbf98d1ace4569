-- The SQL command by which rows of a table are erased: rows that are marked or only emptied stay.
CREATE OR REPLACE FUNCTION reclaim.cascade_command(p reclaim.cascade_participants) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog
AS $$ SELECT CASE WHEN p.soft_delete_column IS NULL AND p.scrub_columns = '{}' THEN 'DELETE' ELSE 'UPDATE' END $$;
REVOKE ALL ON FUNCTION reclaim.cascade_command FROM PUBLIC;
