-- Registers a participant, or changes one. Returns what is wrong with it; null when it takes part from now on. p_past: rows
-- of customers deleted earlier are erased too.
CREATE OR REPLACE FUNCTION reclaim.cascade_add(p_name text, p_table text, p_column text, p_soft text, p_scrub text[], p_page integer,
  p_past boolean) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_new reclaim.cascade_participants;
  v_found text;
  v_lack text;
BEGIN
  IF p_table IS NOT NULL THEN
    SELECT format('%I.%I', n.nspname, c.relname) INTO v_found FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.oid = to_regclass(CASE WHEN p_table LIKE '%.%' THEN p_table ELSE 'public.' || p_table END);
    p_table := coalesce(v_found, p_table);
  END IF;
  v_new := ROW(p_name, CASE WHEN p_table IS NULL THEN 'remote' ELSE 'table' END, p_table, p_column, p_soft,
    coalesce(p_scrub, '{}'), coalesce(p_page, 1000), true, clock_timestamp(), 0, '-infinity')::reclaim.cascade_participants;
  IF p_table IS NOT NULL THEN
    v_lack := reclaim.cascade_lack(v_new);
    IF v_lack IS NOT NULL THEN
      RETURN v_lack;
    END IF;
  END IF;
  PERFORM pg_advisory_xact_lock(1919247212, 4); -- see delete_customers
  INSERT INTO reclaim.cascade_participants VALUES (v_new.*)
    ON CONFLICT (name) DO UPDATE SET kind = EXCLUDED.kind, table_name = EXCLUDED.table_name,
      customer_column = EXCLUDED.customer_column, soft_delete_column = EXCLUDED.soft_delete_column,
      scrub_columns = EXCLUDED.scrub_columns, page_size = EXCLUDED.page_size, enabled = true, tries = 0,
      retry_at = '-infinity';
  IF p_past THEN
    INSERT INTO reclaim.cascade_receipts (customer_id, participant) SELECT customer_id, p_name FROM reclaim.erasures
      ON CONFLICT DO NOTHING;
    UPDATE reclaim.erasures e SET completed_at = NULL WHERE completed_at IS NOT NULL AND EXISTS (
      SELECT FROM reclaim.cascade_receipts r
      WHERE r.customer_id = e.customer_id AND r.participant = p_name AND r.status <> 'done');
  END IF;
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_add FROM PUBLIC;
