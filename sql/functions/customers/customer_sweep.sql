-- Writes the consequences of changes that were noted and left: by writers whose statement triggers do not fire. Notes of
-- transactions that have ended, oldest first, up to p_limit; one that was told since is dropped. Returns how many it took.
CREATE OR REPLACE FUNCTION reclaim.customer_sweep(p_limit integer) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_note reclaim.customer_pending;
  v_actor record;
  v_count integer := 0;
BEGIN
  FOR v_note IN SELECT * FROM reclaim.customer_pending n WHERE n.xid < pg_snapshot_xmin(pg_current_snapshot())
      ORDER BY n.xid, n.id LIMIT p_limit FOR UPDATE LOOP
    DELETE FROM reclaim.customer_pending n WHERE n.xid = v_note.xid AND n.id = v_note.id;
    IF NOT EXISTS (SELECT FROM reclaim.customer_told t WHERE t.customer_id = v_note.customer_id AND t.version >= v_note.version) THEN
      SELECT 'sql' AS kind, NULL::uuid AS id, v_note.role, NULL::uuid AS correlation_id, '' AS reason, NULL AS action, false AS clears
        INTO v_actor;
      PERFORM reclaim.customer_consequences(ARRAY[v_note], v_actor);
    END IF;
    v_count := v_count + 1;
  END LOOP;
  RETURN v_count;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_sweep FROM PUBLIC;
