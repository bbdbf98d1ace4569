-- Notes how far a customer's objects are deleted: p_rows more. p_outcome: going; done; failed, for this customer; stopped, for every
-- customer, and the participant pauses; later, to go on soon. What is found of a complete erasure is counted as having come late.
CREATE OR REPLACE FUNCTION reclaim.storage_note(p_customer uuid, p_participant text, p_rows bigint, p_outcome text, p_error text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
DECLARE
  v_real timestamptz := clock_timestamp();
  v_now timestamptz := reclaim.now();
  v_status text := (SELECT r.status FROM reclaim.cascade_receipts r
    WHERE r.customer_id = p_customer AND r.participant = p_participant FOR UPDATE);
BEGIN
  IF p_outcome = 'stopped' THEN
    PERFORM reclaim.cascade_put_off(p_participant);
  ELSIF p_outcome = 'done' THEN
    UPDATE reclaim.cascade_participants SET tries = 0, retry_at = '-infinity' WHERE name = p_participant AND tries > 0;
  END IF;
  IF v_status = 'done' THEN
    IF p_outcome IN ('failed', 'stopped', 'later') THEN
      INSERT INTO reclaim.storage_checks (customer_id, participant, due_at)
        VALUES (p_customer, p_participant, v_real + CASE WHEN p_outcome = 'failed' THEN interval '1 hour' ELSE '0' END) ON CONFLICT DO NOTHING;
    END IF;
    IF p_rows > 0 THEN
      UPDATE reclaim.cascade_receipts SET rows = rows + p_rows, late_rows = late_rows + p_rows, late_at = v_now, done_at = v_now
        WHERE customer_id = p_customer AND participant = p_participant;
      PERFORM reclaim.receipts_note(p_participant, ARRAY[p_customer], 'reclaim');
      UPDATE reclaim.erasures SET reopened_at = v_now, settled_at = v_now, completed_at = NULL, certificate_id = NULL, rescan_at = NULL
        WHERE customer_id = p_customer AND settled_at IS NOT NULL;
    END IF;
  ELSIF p_outcome = 'done' AND v_status <> 'kept' THEN
    PERFORM reclaim.cascade_write(p_participant, ARRAY[p_customer], ARRAY[p_customer], ARRAY[p_rows], '{}', v_now);
    PERFORM reclaim.erasures_settle(ARRAY[p_customer]);
  ELSIF v_status <> 'kept' THEN
    UPDATE reclaim.cascade_receipts r SET rows = r.rows + p_rows,
        late_rows = r.late_rows + CASE WHEN r.late_at IS NULL THEN 0 ELSE p_rows END,
        status = CASE WHEN p_error IS NULL THEN 'pending' ELSE 'failed' END, error = left(p_error, 200),
        tries = r.tries + CASE WHEN p_error IS NULL THEN 0 ELSE 1 END,
        first_tried_at = coalesce(r.first_tried_at, v_now), last_tried_at = v_now,
        next_try_at = CASE p_outcome WHEN 'going' THEN v_real + interval '10 minutes'
          WHEN 'failed' THEN v_real + reclaim.pause_after(r.tries + 1) ELSE v_real END
      WHERE r.customer_id = p_customer AND r.participant = p_participant;
  END IF;
END
$$;
REVOKE ALL ON FUNCTION reclaim.storage_note FROM PUBLIC;
