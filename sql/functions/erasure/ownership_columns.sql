-- What to set in a row of an ownership table so that nothing personal is left: for each column that is neither a key nor a
-- time, a yes or no, or one of few values, the expression that empties it; null: there is none, and the column is kept.
CREATE OR REPLACE FUNCTION reclaim.ownership_columns(p_table regclass, p_owners text[]) RETURNS TABLE (name text, cleared text)
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT a.attname, CASE
      WHEN NOT a.attnotnull AND coalesce(NOT t.typnotnull, true) THEN 'NULL'
      WHEN b.typcategory = 'S' AND uniq.ue THEN CASE WHEN a.atttypmod BETWEEN 5 AND 47 OR b.typname = 'bpchar' THEN NULL
        ELSE '''deleted_'' || gen_random_uuid()' END
      WHEN uniq.ue THEN NULL
      WHEN b.typcategory = 'S' OR b.typname IN ('bytea', 'xml') THEN ''''''
      WHEN b.typname IN ('json', 'jsonb') OR b.typcategory = 'A' THEN '''{}'''
      WHEN b.typcategory = 'N' THEN '0' END
  FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
  JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
  CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM pg_index i
    WHERE i.indrelid = p_table AND i.indisunique AND a.attnum = ANY (i.indkey)) AS ue) AS uniq
  WHERE a.attrelid = p_table AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND a.attidentity = ''
    AND NOT a.attname = ANY (p_owners) AND b.typcategory NOT IN ('B', 'E')
    AND b.typname NOT IN ('uuid', 'timestamp', 'timestamptz')
    AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = p_table AND k.contype IN ('p', 'f') AND a.attnum = ANY (k.conkey))
  ORDER BY a.attnum
$$;
REVOKE ALL ON FUNCTION reclaim.ownership_columns FROM PUBLIC;
