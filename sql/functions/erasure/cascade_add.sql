-- Registers a participant, or changes one. Returns what is wrong with it; null when it takes part from now on. p_past:
-- customers deleted earlier are erased from it too, and a remote one is told of them. p_by: what the column holds the id of.
CREATE OR REPLACE FUNCTION reclaim.cascade_add(p_name text, p_table text, p_column text, p_soft text, p_scrub text[], p_page integer,
  p_past boolean, p_by text DEFAULT 'customer', p_label text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_new reclaim.cascade_participants;
  v_found text;
  v_lack text;
BEGIN
  IF p_name LIKE 'reclaim.%' THEN
    RETURN 'names that begin with reclaim. are Reclaim''s own';
  END IF;
  IF p_table IS NOT NULL THEN
    SELECT format('%I.%I', n.nspname, c.relname) INTO v_found FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.oid = to_regclass(CASE WHEN p_table LIKE '%.%' THEN p_table ELSE 'public.' || p_table END);
    p_table := coalesce(v_found, p_table);
  END IF;
  v_new.name := p_name;
  v_new.kind := CASE WHEN p_table IS NULL THEN 'remote' ELSE 'table' END;
  v_new.table_name := p_table;
  v_new.customer_column := p_column;
  v_new.soft_delete_column := p_soft;
  v_new.scrub_columns := coalesce(p_scrub, '{}');
  v_new.id_of := coalesce(p_by, 'customer');
  IF p_table IS NOT NULL THEN
    v_lack := reclaim.cascade_lack(v_new);
    IF v_lack IS NOT NULL THEN
      RETURN v_lack;
    END IF;
  END IF;
  PERFORM pg_advisory_xact_lock(1919247212, 4); -- see erasure_begin
  INSERT INTO reclaim.cascade_participants AS p (name, kind, table_name, customer_column, soft_delete_column, scrub_columns,
      page_size, label, id_of)
    VALUES (p_name, v_new.kind, p_table, p_column, p_soft, v_new.scrub_columns, coalesce(p_page, 1000), coalesce(p_label, ''), v_new.id_of)
    ON CONFLICT (name) DO UPDATE SET kind = EXCLUDED.kind, table_name = EXCLUDED.table_name,
      customer_column = EXCLUDED.customer_column, soft_delete_column = EXCLUDED.soft_delete_column,
      scrub_columns = EXCLUDED.scrub_columns, page_size = EXCLUDED.page_size, id_of = EXCLUDED.id_of, bucket = NULL, prefix = NULL,
      label = coalesce(p_label, p.label), enabled = true, tries = 0, retry_at = '-infinity';
  PERFORM reclaim.cascade_resume(p_name, p_past);
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_add FROM PUBLIC;
