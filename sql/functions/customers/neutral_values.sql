-- Values that say nothing, for a column of this type that may not be null: the first that the type takes is used.
CREATE OR REPLACE FUNCTION reclaim.neutral_values(p_type oid, p_typmod integer) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT CASE t.typcategory
    WHEN 'S' THEN ARRAY['']
    WHEN 'N' THEN ARRAY['0']
    WHEN 'B' THEN ARRAY['false']
    WHEN 'D' THEN ARRAY['epoch', '00:00', '00:00+00']
    WHEN 'T' THEN ARRAY['0']
    WHEN 'A' THEN ARRAY['{}', '']
    WHEN 'R' THEN ARRAY['empty', '{}']
    WHEN 'E' THEN ARRAY[(SELECT e.enumlabel::text FROM pg_enum e WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder LIMIT 1)]
    WHEN 'I' THEN ARRAY['0.0.0.0', '0.0.0.0/0']
    WHEN 'G' THEN ARRAY['(0,0)', '{1,0,0}', '[(0,0),(0,0)]', '((0,0))', '((0,0),(0,0))', '<(0,0),0>']
    WHEN 'V' THEN ARRAY['', '0']
    WHEN 'C' THEN ARRAY['(' || repeat(',', (SELECT count(*)::integer - 1 FROM pg_attribute a
      WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped)) || ')']
    ELSE ARRAY['', '{}', '0', '00000000-0000-0000-0000-000000000000', '00:00:00:00:00:00', '0/0', '1:1:', '(0,0)', '()', '[]', '$',
      '[' || repeat('0,', greatest(p_typmod, 1) - 1) || '0]', 'POINT EMPTY'] END
  FROM pg_type t WHERE t.oid = p_type
$$;
REVOKE ALL ON FUNCTION reclaim.neutral_values FROM PUBLIC;
