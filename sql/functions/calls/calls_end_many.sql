-- The hang-up of many customers that were frozen or deleted together, most of which have no call: sets frozen_calls_at of
-- those, and queues a hang-up for each of the others. Returns how many it queued.
CREATE OR REPLACE FUNCTION reclaim.calls_end_many(p_customers uuid[]) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_held uuid[];
  v_calling uuid[];
  v_queued bigint;
BEGIN
  -- While a row is locked its customer is not recovered and begins no call. This never waits for one row while it holds
  -- others: when another transaction has one of them, each customer gets an item.
  BEGIN
    v_held := ARRAY(SELECT c.id FROM reclaim.customer_customers c WHERE c.id = ANY (p_customers) AND c.status = 'frozen'
      AND c.frozen_calls_at IS NULL ORDER BY c.id FOR NO KEY UPDATE NOWAIT);
  EXCEPTION WHEN lock_not_available THEN
    v_held := '{}';
  END;
  v_calling := ARRAY(
      SELECT c.customer_id FROM reclaim.call_calls c WHERE c.customer_id = ANY (p_customers) AND c.status <> 'hangup'
    UNION
      SELECT c.ending_for FROM reclaim.call_calls c
        WHERE c.ending_for = ANY (p_customers) AND c.ending_for IS NOT NULL AND c.status <> 'hangup'
    UNION -- of a group call it began, its own part may have ended before the others
      SELECT b.customer_id FROM reclaim.call_calls b JOIN reclaim.call_calls c ON c.groupcall_id = b.groupcall_id
        WHERE b.customer_id = ANY (p_customers) AND b.groupcall_id IS NOT NULL AND c.status <> 'hangup');
  UPDATE reclaim.customer_customers c SET frozen_calls_at = reclaim.now()
    WHERE c.id = ANY (v_held) AND c.id <> ALL (v_calling);
  INSERT INTO reclaim.work_items (kind, payload)
    SELECT 'hangup', jsonb_build_object('customer_id', one.id) FROM (
        SELECT unnest(v_calling) AS id
      UNION
        SELECT c.id FROM reclaim.customer_customers c
          WHERE c.id = ANY (p_customers) AND c.status = 'frozen' AND c.frozen_calls_at IS NULL) one;
  GET DIAGNOSTICS v_queued = ROW_COUNT;
  PERFORM pg_notify('reclaim_work', '');
  RETURN v_queued;
END
$$;
REVOKE ALL ON FUNCTION reclaim.calls_end_many FROM PUBLIC;
