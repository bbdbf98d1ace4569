-- After a statement on customer_customers: writes what follows from the changes that it noted.
CREATE OR REPLACE FUNCTION reclaim.customer_follow() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_xid xid8 := pg_current_xact_id_if_assigned();
  v_notes reclaim.customer_pending[];
  v_again boolean := false;
BEGIN
  IF v_xid IS NOT NULL THEN
    WITH mine AS (DELETE FROM reclaim.customer_pending WHERE xid = v_xid RETURNING *)
      SELECT array_agg(mine ORDER BY mine.customer_id) INTO v_notes FROM mine;
    -- A trigger of the team's may have changed a row again within the statement: what counts is the last change, if it is one.
    IF cardinality(v_notes) > 1 THEN
      v_again := (SELECT count(DISTINCT n.customer_id) FROM unnest(v_notes) n) < cardinality(v_notes);
    END IF;
    IF v_again THEN
      v_notes := ARRAY(SELECT l.note FROM (
          SELECT n AS note, row_number() OVER (PARTITION BY n.customer_id ORDER BY n.id DESC) AS newer,
            count(*) OVER (PARTITION BY n.customer_id) AS of_it FROM unnest(v_notes) n) l
        WHERE l.newer = 1 AND (l.of_it = 1 OR coalesce((SELECT t.status FROM reclaim.customer_told t
          WHERE t.customer_id = (l.note).customer_id), 'active') IS DISTINCT FROM CASE (l.note).change WHEN 'freeze' THEN 'frozen'
            WHEN 'recover' THEN 'active' WHEN 'delete' THEN 'deleted' END)
        ORDER BY (l.note).customer_id);
    END IF;
    IF v_notes <> '{}' THEN
      PERFORM reclaim.customer_consequences(v_notes, reclaim.change_actor());
    END IF;
  END IF;
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_follow FROM PUBLIC;
