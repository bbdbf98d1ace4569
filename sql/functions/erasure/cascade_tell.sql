-- Publishes the deletions of these customers, null: of all, again for remote participants whose receipts are open; null: for
-- any, in the epoch in force: consumers may have dropped it in one before (docs/events.md). An event that is kept no more is written once more, with the version that was told.
CREATE OR REPLACE FUNCTION reclaim.cascade_tell(p_participant text, p_customers uuid[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_asked uuid[] := ARRAY(SELECT DISTINCT r.customer_id FROM reclaim.cascade_receipts r
    JOIN reclaim.cascade_participants p ON p.name = r.participant AND p.kind = 'remote' AND p.enabled
    WHERE r.status <> 'done' AND r.status <> 'kept' AND (p_participant IS NULL OR p.name = p_participant)
      AND (p_customers IS NULL OR r.customer_id = ANY (p_customers)));
BEGIN
  IF v_asked <> '{}' THEN
    -- An event that others of its customer follow, whose id is in use again, stays before them.
    UPDATE reclaim.event_outbox o SET published_at = NULL, epoch = CASE WHEN EXISTS (
          SELECT FROM reclaim.event_outbox n WHERE n.customer_id = o.customer_id AND n.position > o.position) THEN o.epoch
        ELSE (SELECT i.epoch FROM reclaim.installation i) END
      WHERE o.type = 'customer_deleted' AND o.published_at IS NOT NULL AND o.customer_id = ANY (v_asked);
    INSERT INTO reclaim.event_outbox (epoch, sequence, type, customer_id, payload)
      SELECT (SELECT epoch FROM reclaim.installation), t.version, 'customer_deleted', t.customer_id, reclaim.customer_object_deleted(t.customer_id, c.billing_account_id,
        c.tm_deletion_scheduled, c.tm_create, c.tm_update, c.tm_delete) || jsonb_build_object('remaining_balance_micros', t.remaining_micros)
      FROM reclaim.customer_told t LEFT JOIN reclaim.customer_customers c ON c.id = t.customer_id
      WHERE t.customer_id = ANY (v_asked) AND t.status = 'deleted' AND NOT EXISTS (
        SELECT FROM reclaim.event_outbox o WHERE o.customer_id = t.customer_id AND o.type = 'customer_deleted')
      ON CONFLICT (customer_id, epoch, sequence) DO NOTHING;
  END IF;
  PERFORM pg_notify('reclaim_events', '');
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_tell FROM PUBLIC;
