-- A participant that takes part again owes its receipt to the customers that were deleted while it was disabled or removed;
-- p_all: to all that were deleted before. A remote one is told of them. Returns how many receipts became due.
CREATE OR REPLACE FUNCTION reclaim.cascade_resume(p_participant text, p_all boolean) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_due uuid[];
BEGIN
  PERFORM pg_advisory_xact_lock_shared(1919247212, 8); -- nothing is certified before these receipts are seen
  WITH due AS (
    UPDATE reclaim.cascade_receipts SET status = 'pending', next_try_at = clock_timestamp(), error = NULL
      WHERE participant = p_participant AND status = 'kept' RETURNING customer_id)
  SELECT array_agg(customer_id) INTO v_due FROM due;
  IF p_all THEN
    WITH due AS (
      INSERT INTO reclaim.cascade_receipts (customer_id, participant) SELECT customer_id, p_participant FROM reclaim.erasures
        ON CONFLICT DO NOTHING RETURNING customer_id)
    SELECT coalesce(v_due, '{}') || coalesce(array_agg(customer_id), '{}') INTO v_due FROM due;
  END IF;
  IF v_due IS NULL OR v_due = '{}' THEN
    RETURN 0;
  END IF;
  UPDATE reclaim.erasures SET completed_at = NULL, settled_at = NULL, certificate_id = NULL, reopened_at = reclaim.now(), rescan_at = NULL
    WHERE customer_id = ANY (v_due) AND settled_at IS NOT NULL;
  PERFORM reclaim.cascade_tell(p_participant, v_due);
  RETURN cardinality(v_due);
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_resume FROM PUBLIC;
