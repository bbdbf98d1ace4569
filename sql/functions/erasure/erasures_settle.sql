-- Settles the erasures of customers whose last receipt may have been written: they are complete once they are proved, by the
-- leader (src/erasure/prove.h). Takes a lock until the commit, and reads in
-- a statement of its own after it: of two transactions that write the last two receipts, the second sees the first.
--
-- Looks up by the primary keys. The conditions are written so that no index of open rows fits them: after an ANALYZE between two
-- erasures such an index seems to be empty, and would be read whole for each customer.
CREATE OR REPLACE FUNCTION reclaim.erasures_settle(p_ids uuid[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_now timestamptz;
BEGIN
  PERFORM pg_advisory_xact_lock(1919247212, 5);
  v_now := reclaim.now();
  UPDATE reclaim.erasures e SET settled_at = v_now
    WHERE e.customer_id = ANY (p_ids) AND coalesce(e.settled_at, 'infinity') = 'infinity' AND e.cleared
      AND coalesce((SELECT bool_and(r.status IN ('done', 'kept')) FROM reclaim.cascade_receipts r
        WHERE r.customer_id = e.customer_id), true);
END
$$;
REVOKE ALL ON FUNCTION reclaim.erasures_settle FROM PUBLIC;
