-- Queues what is due in Supabase Storage, as work for whichever instance claims it: an item a customer and bucket, p_most open ones
-- at a time, so that they delay no mails. Open receipts first, then complete erasures that are looked at again. A receipt whose item
-- is lost becomes due again after ten minutes. Returns how many it has queued.
CREATE OR REPLACE FUNCTION reclaim.storage_promise(p_most integer) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_open integer; -- items, with those that are queued here
  v_queued integer := 0;
  v_ids uuid[];
  v_p reclaim.cascade_participants;
BEGIN
  FOR v_p IN SELECT * FROM reclaim.cascade_participants WHERE kind = 'storage' AND enabled AND retry_at <= v_now ORDER BY name LOOP
    v_open := coalesce(v_open, (SELECT count(*) FROM reclaim.work_items w WHERE w.state = 'open' AND w.kind = 'storage'));
    EXIT WHEN v_open >= p_most;
    v_ids := reclaim.cascade_due(v_p.name, 'user', v_now, p_most - v_open);
    UPDATE reclaim.cascade_receipts SET next_try_at = v_now + interval '10 minutes' WHERE participant = v_p.name AND customer_id = ANY (v_ids);
    WITH due AS (
      DELETE FROM reclaim.storage_checks c WHERE c.participant = v_p.name AND c.customer_id IN (
          SELECT s.customer_id FROM reclaim.storage_checks s WHERE s.participant = v_p.name AND s.due_at <= v_now
          LIMIT p_most - v_open - cardinality(v_ids))
        RETURNING c.customer_id)
    SELECT v_ids || coalesce(array_agg(customer_id), '{}') INTO v_ids FROM due;
    INSERT INTO reclaim.work_items (kind, payload)
      SELECT 'storage', jsonb_build_object('customer_id', one, 'participant', v_p.name) FROM unnest(v_ids) AS one;
    v_open := v_open + cardinality(v_ids);
    v_queued := v_queued + cardinality(v_ids);
  END LOOP;
  IF v_queued > 0 THEN
    PERFORM pg_notify('reclaim_work', '');
  END IF;
  RETURN v_queued;
END
$$;
REVOKE ALL ON FUNCTION reclaim.storage_promise FROM PUBLIC;
