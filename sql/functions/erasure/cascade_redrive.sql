-- Makes unfinished receipts due at once: of one customer or of all, of one participant or of all. Events to remote services
-- are published again. A participant added after a customer was deleted gets a receipt to complete.
CREATE OR REPLACE FUNCTION reclaim.cascade_redrive(p_customer uuid, p_participant text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_count bigint;
BEGIN
  IF p_customer IS NOT NULL THEN
    PERFORM pg_advisory_xact_lock_shared(1919247212, 8); -- nothing is certified before these receipts are seen
    INSERT INTO reclaim.cascade_receipts (customer_id, participant)
      SELECT e.customer_id, p.name FROM reclaim.erasures e CROSS JOIN reclaim.cascade_participants p
      WHERE e.customer_id = p_customer AND p.enabled AND p.id_of <> 'account' AND (p_participant IS NULL OR p.name = p_participant)
      ON CONFLICT DO NOTHING;
    UPDATE reclaim.erasures SET completed_at = NULL, settled_at = NULL, certificate_id = NULL, reopened_at = reclaim.now()
      WHERE customer_id = p_customer AND settled_at IS NOT NULL AND EXISTS (
        SELECT FROM reclaim.cascade_receipts r WHERE r.customer_id = p_customer AND r.status NOT IN ('done', 'kept'));
    IF NOT EXISTS (SELECT FROM reclaim.cascade_receipts r WHERE r.customer_id = p_customer AND r.status NOT IN ('done', 'kept')) THEN
      PERFORM reclaim.erasures_settle(ARRAY[p_customer]); -- if it is not
    END IF;
  END IF;
  UPDATE reclaim.cascade_participants SET tries = 0, retry_at = '-infinity'
    WHERE tries > 0 AND (p_participant IS NULL OR name = p_participant);
  PERFORM reclaim.cascade_tell(p_participant, CASE WHEN p_customer IS NOT NULL THEN ARRAY[p_customer] END);
  UPDATE reclaim.cascade_receipts SET next_try_at = clock_timestamp()
    WHERE status <> 'done' AND status <> 'kept' AND (p_customer IS NULL OR customer_id = p_customer)
      AND (p_participant IS NULL OR participant = p_participant);
  GET DIAGNOSTICS v_count = ROW_COUNT;
  RETURN v_count;
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_redrive FROM PUBLIC;
