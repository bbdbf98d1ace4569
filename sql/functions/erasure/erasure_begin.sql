-- Begins the erasure of deleted customers: an open receipt for each participant. p_cleared: their own rows are cleared in
-- this transaction. A participant is either seen here, or is added after this commit and then finds these customers as deleted.
CREATE OR REPLACE FUNCTION reclaim.erasure_begin(p_customers uuid[], p_cleared boolean) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_real timestamptz := clock_timestamp(); -- the cascade does not follow the installation's time
BEGIN
  PERFORM pg_advisory_xact_lock_shared(1919247212, 4);
  INSERT INTO reclaim.cascade_receipts (customer_id, participant, next_try_at)
    SELECT one, p.name, v_real FROM unnest(p_customers) AS one CROSS JOIN reclaim.cascade_participants p WHERE p.enabled
    ON CONFLICT DO NOTHING;
  INSERT INTO reclaim.erasures (customer_id, requested_at, cleared, completed_at)
    SELECT one, v_real, p_cleared, CASE WHEN p_cleared
      AND NOT EXISTS (SELECT FROM reclaim.cascade_participants p WHERE p.enabled) THEN v_real END
    FROM unnest(p_customers) AS one ON CONFLICT DO NOTHING;
END
$$;
REVOKE ALL ON FUNCTION reclaim.erasure_begin FROM PUBLIC;
