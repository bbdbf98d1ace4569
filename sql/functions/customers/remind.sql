-- Queues the mails of one reminder to frozen customers whose deletion is p_before_ms away or less, but more than p_until_ms:
-- when the next reminder is due too, only that one is sent. None for those who were frozen, or told of a new date
-- (reminders_restart), with less time left: it would arrive together with that mail. Returns how many.
CREATE OR REPLACE FUNCTION reclaim.remind(p_before_ms bigint, p_until_ms bigint, p_limit integer) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_before interval := p_before_ms * interval '1 millisecond';
  v_newest timestamptz := reclaim.now() + v_before;
  v_oldest timestamptz := reclaim.now() + p_until_ms * interval '1 millisecond';
  v_count integer;
BEGIN
  WITH due AS (
    SELECT c.id, c.tm_deletion_scheduled AS scheduled FROM reclaim.customer_customers c
    WHERE c.status = 'frozen' AND c.deletion_effective_at <= v_newest AND c.deletion_effective_at > v_oldest
      AND c.tm_deletion_scheduled < c.deletion_effective_at - v_before
      AND c.hold_at IS NULL AND NOT EXISTS (SELECT FROM reclaim.reminders r WHERE r.customer_id = c.id
        AND r.scheduled = c.tm_deletion_scheduled
        AND (r.before_ms = p_before_ms OR r.before_ms = 0 AND r.created_at >= c.deletion_effective_at - v_before))
    ORDER BY c.deletion_effective_at, c.id LIMIT p_limit
  ), told AS (
    INSERT INTO reclaim.reminders (customer_id, scheduled, before_ms) SELECT id, scheduled, p_before_ms FROM due
      ON CONFLICT DO NOTHING RETURNING customer_id, scheduled
  ), mails AS (
    INSERT INTO reclaim.work_items (kind, payload)
      SELECT 'mail', jsonb_build_object('template', 'customer-reminder', 'customer_id', customer_id,
        'scheduled', reclaim.rfc3339(scheduled)) FROM told
  )
  SELECT count(*) INTO v_count FROM told;
  PERFORM pg_notify('reclaim_work', '');
  RETURN v_count;
END
$$;
REVOKE ALL ON FUNCTION reclaim.remind FROM PUBLIC;
