-- Writes the receipts of a page: which customers it was for, how many rows it erased of which (those not in p_counted had none),
-- and who has rows left.
--
-- Looks each receipt up by its whole key, whatever the statistics say, which are those of an empty table when many customers are
-- erased at once. For that the participant comes from the subquery: compared with a parameter, it would lead to all its receipts; and
-- the condition on the status is written so that the index of open receipts does not fit it.
--
-- A receipt that is finished by now, since the participant was disabled or removed meanwhile, is no longer the page's: the
-- transaction fails, and what it erased is erased when the participant takes part again.
CREATE OR REPLACE FUNCTION reclaim.cascade_write(p_participant text, p_ids uuid[], p_counted uuid[], p_counts bigint[],
  p_remaining uuid[], p_now timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog SET enable_seqscan = off SET enable_mergejoin = off SET jit = off
  SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_done timestamptz := reclaim.now(); -- once, not for each receipt
  v_count integer;
BEGIN
  UPDATE reclaim.cascade_receipts r SET rows = r.rows + page.rows,
      late_rows = r.late_rows + CASE WHEN r.late_at IS NULL THEN 0 ELSE page.rows END,
      status = CASE WHEN page.remains THEN 'pending' ELSE 'done' END,
      tries = r.tries + CASE WHEN page.remains THEN 0 ELSE 1 END,
      first_tried_at = coalesce(r.first_tried_at, p_now), last_tried_at = p_now, error = NULL,
      done_at = CASE WHEN page.remains THEN NULL ELSE v_done END
    FROM (SELECT one.id, p_participant AS participant, coalesce(n.rows, 0) AS rows, one.id = ANY (p_remaining) AS remains
      FROM unnest(p_ids) AS one (id) LEFT JOIN unnest(p_counted, p_counts) AS n (id, rows) ON n.id = one.id OFFSET 0) AS page
    WHERE r.customer_id = page.id AND r.participant = page.participant AND coalesce(r.status, '') NOT IN ('done', 'kept');
  GET DIAGNOSTICS v_count = ROW_COUNT;
  IF v_count < cardinality(p_ids) THEN
    RAISE serialization_failure USING MESSAGE = format('receipts of %s were finished meanwhile', p_participant);
  END IF;
  PERFORM reclaim.receipts_note(p_participant, ARRAY(SELECT unnest(p_ids) EXCEPT SELECT unnest(p_remaining)), 'reclaim');
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_write FROM PUBLIC;
