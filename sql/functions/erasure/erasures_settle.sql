-- Completes the erasures of customers whose last receipt may have been written. Takes a lock until the commit, and reads in
-- a statement of its own after it: of two transactions that write the last two receipts, the second sees the first.
CREATE OR REPLACE FUNCTION reclaim.erasures_settle(p_ids uuid[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(1919247212, 5);
  UPDATE reclaim.erasures e SET completed_at = clock_timestamp(),
      rescan_at = clock_timestamp() + interval '1 hour'
    WHERE e.customer_id = ANY (p_ids) AND e.completed_at IS NULL AND e.cleared AND NOT EXISTS (
      SELECT FROM reclaim.cascade_receipts r WHERE r.customer_id = e.customer_id AND r.status <> 'done' AND r.status <> 'kept');
END
$$;
REVOKE ALL ON FUNCTION reclaim.erasures_settle FROM PUBLIC;
