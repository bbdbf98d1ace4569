-- Registers a bucket of Supabase Storage as a participant, or changes one; p_prefix, p_past and p_label: as in the table, and in
-- reclaim.cascade_add. Returns what is wrong with it; null when it takes part from now on.
CREATE OR REPLACE FUNCTION reclaim.storage_add(p_name text, p_bucket text, p_prefix text, p_past boolean, p_label text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
BEGIN
  IF p_name LIKE 'reclaim.%' THEN
    RETURN 'names that begin with reclaim. are Reclaim''s own';
  END IF;
  PERFORM pg_advisory_xact_lock(1919247212, 4); -- see erasure_begin
  INSERT INTO reclaim.cascade_participants AS p (name, kind, bucket, prefix, label, id_of)
    VALUES (p_name, 'storage', p_bucket, p_prefix, coalesce(p_label, ''), 'user')
    ON CONFLICT (name) DO UPDATE SET kind = EXCLUDED.kind, table_name = NULL, customer_column = NULL, soft_delete_column = NULL,
      scrub_columns = '{}', id_of = EXCLUDED.id_of, bucket = EXCLUDED.bucket, prefix = EXCLUDED.prefix,
      label = coalesce(p_label, p.label), enabled = true, tries = 0, retry_at = '-infinity';
  PERFORM reclaim.cascade_resume(p_name, p_past);
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION reclaim.storage_add FROM PUBLIC;
