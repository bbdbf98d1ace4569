-- The condition that a column of a row (p_row: its alias) has something in it that an erasure does not leave there. p_value: what it leaves, as
-- SQL; null: the column cannot be emptied, and then a UUID in it says nothing about a person.
CREATE OR REPLACE FUNCTION reclaim.cascade_dirty(p_row text, p_name text, p_type text, p_value text) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog
AS $$
  SELECT format('%1$s.%2$I::text NOT IN ('''', ''{}'') AND %1$s.%2$I::text !~ ''^%3$s[0-9a-f]{8}-[0-9a-f-]{27}(@removed\.invalid)?$''',
      p_row, p_name, CASE WHEN p_value IS NULL THEN '(deleted_)?' ELSE 'deleted_' END)
    || CASE WHEN p_value <> 'NULL' THEN format(' AND %s.%I::text <> CAST(%s AS %s)::text', p_row, p_name, p_value, p_type) ELSE '' END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_dirty FROM PUBLIC;
