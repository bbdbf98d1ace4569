-- The customers whose turn it is at a participant, those that have waited longest first. p_id_of: what its table knows them by.
--
-- Reads the index of open receipts in its order and ends with the page, whatever the statistics say: with a sort each page would
-- read every receipt that is still open.
CREATE OR REPLACE FUNCTION reclaim.cascade_due(p_participant text, p_id_of text, p_now timestamptz, p_customers integer) RETURNS uuid[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
  SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
  RETURN ARRAY(SELECT r.customer_id FROM reclaim.cascade_receipts r
    WHERE r.participant = p_participant AND r.status <> 'done' AND r.status <> 'kept' AND r.next_try_at <= p_now
      -- Whose logins go with a customer is known once its own row is cleared.
      AND (p_id_of <> 'user' OR EXISTS (SELECT FROM reclaim.erasures e WHERE e.customer_id = r.customer_id AND e.cleared))
    ORDER BY r.next_try_at, r.customer_id LIMIT p_customers);
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_due FROM PUBLIC;
