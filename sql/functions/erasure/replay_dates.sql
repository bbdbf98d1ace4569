-- Of a replay of erasures: frozen customers, p_limit at most, are deleted in a week at the earliest, since the backup does not know who
-- recovered or came under a legal hold after it. A mail names the new date. Those who have a week are left, so that a replay that is
-- repeated within a day moves nothing again. moved: how many, 0 when none is left.
CREATE OR REPLACE FUNCTION reclaim.replay_dates(p_limit integer, OUT moved integer)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_now timestamptz := reclaim.now();
  v_ids uuid[] := ARRAY(SELECT c.id FROM reclaim.customer_customers c WHERE c.status = 'frozen'
    AND coalesce(c.deletion_effective_at, c.tm_deletion_scheduled + reclaim.grace()) < v_now + interval '7 days'
    ORDER BY c.id LIMIT p_limit FOR UPDATE);
BEGIN
  WITH changed AS (
    UPDATE reclaim.customer_customers SET deletion_effective_at = v_now + interval '8 days' WHERE id = ANY (v_ids)
      RETURNING id, deletion_effective_at)
  SELECT coalesce(array_agg(c.id), '{}') INTO v_ids FROM changed c WHERE c.deletion_effective_at > v_now + interval '7 days';
  moved := cardinality(v_ids);
  IF moved = 0 THEN
    RETURN;
  END IF;
  PERFORM reclaim.reminders_restart(v_ids);
  INSERT INTO reclaim.work_items (kind, payload)
    SELECT 'mail', jsonb_build_object('template', 'customer-moved', 'customer_id', one) FROM unnest(v_ids) AS one
      WHERE (SELECT i.mails FROM reclaim.installation i);
  PERFORM pg_notify('reclaim_work', ''), pg_notify('reclaim_customers', '');
END
$$;
REVOKE ALL ON FUNCTION reclaim.replay_dates FROM PUBLIC;
