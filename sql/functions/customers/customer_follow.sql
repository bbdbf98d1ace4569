-- After a statement on customer_customers: writes what follows from the changes that it noted.
CREATE OR REPLACE FUNCTION reclaim.customer_follow() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_xid xid8 := pg_current_xact_id_if_assigned();
  v_notes reclaim.customer_pending[];
BEGIN
  IF v_xid IS NOT NULL THEN
    WITH mine AS (DELETE FROM reclaim.customer_pending WHERE xid = v_xid RETURNING *)
      SELECT array_agg(mine ORDER BY mine.customer_id) INTO v_notes FROM mine;
    IF v_notes IS NOT NULL THEN
      PERFORM reclaim.customer_consequences(v_notes, reclaim.change_actor());
    END IF;
  END IF;
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_follow FROM PUBLIC;
