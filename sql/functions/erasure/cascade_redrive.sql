-- Makes unfinished receipts due at once: of one customer or of all, of one participant or of all. Events to remote services
-- are published again. A participant added after a customer was deleted gets a receipt to complete.
CREATE OR REPLACE FUNCTION reclaim.cascade_redrive(p_customer uuid, p_participant text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_count bigint;
BEGIN
  IF p_customer IS NOT NULL THEN
    INSERT INTO reclaim.cascade_receipts (customer_id, participant)
      SELECT e.customer_id, p.name FROM reclaim.erasures e CROSS JOIN reclaim.cascade_participants p
      WHERE e.customer_id = p_customer AND p.enabled AND (p_participant IS NULL OR p.name = p_participant)
      ON CONFLICT DO NOTHING;
    UPDATE reclaim.erasures SET completed_at = NULL WHERE customer_id = p_customer AND completed_at IS NOT NULL
      AND EXISTS (SELECT FROM reclaim.cascade_receipts r WHERE r.customer_id = p_customer AND r.status <> 'done');
  END IF;
  UPDATE reclaim.cascade_participants SET tries = 0, retry_at = '-infinity'
    WHERE tries > 0 AND (p_participant IS NULL OR name = p_participant);
  UPDATE reclaim.event_outbox o SET published_at = NULL
    WHERE o.type = 'customer_deleted' AND o.published_at IS NOT NULL AND (p_customer IS NULL OR o.customer_id = p_customer)
      AND o.customer_id IN (SELECT r.customer_id FROM reclaim.cascade_receipts r
        JOIN reclaim.cascade_participants p ON p.name = r.participant
        WHERE r.status <> 'done' AND p.kind = 'remote' AND (p_participant IS NULL OR p.name = p_participant));
  UPDATE reclaim.cascade_receipts SET next_try_at = clock_timestamp()
    WHERE status <> 'done' AND (p_customer IS NULL OR customer_id = p_customer)
      AND (p_participant IS NULL OR participant = p_participant);
  GET DIAGNOSTICS v_count = ROW_COUNT;
  PERFORM pg_notify('reclaim_events', '');
  RETURN v_count;
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_redrive FROM PUBLIC;
