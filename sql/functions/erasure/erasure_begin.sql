-- Begins the erasure of deleted customers: an open receipt for each participant. p_cleared: their own rows are cleared in
-- this transaction. A participant is either seen here, or is added after this commit and then finds these customers as deleted.
-- A table of accounts has a part only where a customer has rows in it: most have none.
CREATE OR REPLACE FUNCTION reclaim.erasure_begin(p_customers uuid[], p_cleared boolean) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_real timestamptz := clock_timestamp(); -- pauses between tries are in real time
  v_now timestamptz := reclaim.now();
  v_p reclaim.cascade_participants;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(1919247212, 4);
  INSERT INTO reclaim.cascade_receipts (customer_id, participant, next_try_at, status, error)
    SELECT one, p.name, v_real, CASE WHEN p.enabled THEN 'pending' ELSE 'kept' END,
      CASE WHEN NOT p.enabled THEN concat_ws(': ', 'the participant is disabled', nullif(p.disabled_reason, '')) END
    FROM unnest(p_customers) AS one CROSS JOIN reclaim.cascade_participants p WHERE p.id_of <> 'account'
    ON CONFLICT DO NOTHING;
  FOR v_p IN SELECT * FROM reclaim.cascade_participants WHERE id_of = 'account' LOOP
    INSERT INTO reclaim.cascade_receipts (customer_id, participant, next_try_at, status, error)
      SELECT one, v_p.name, v_real, CASE WHEN v_p.enabled THEN 'pending' ELSE 'kept' END,
        CASE WHEN NOT v_p.enabled THEN concat_ws(': ', 'the participant is disabled', nullif(v_p.disabled_reason, '')) END
      FROM unnest(reclaim.cascade_left(v_p, p_customers)) AS one ON CONFLICT DO NOTHING;
  END LOOP;
  PERFORM reclaim.receipts_note(p.name, p_customers, 'reclaim') FROM reclaim.cascade_participants p WHERE NOT p.enabled;
  INSERT INTO reclaim.erasures (customer_id, requested_at, cleared, settled_at)
    SELECT one, v_now, p_cleared, CASE WHEN p_cleared
      AND NOT EXISTS (SELECT FROM reclaim.cascade_participants p WHERE p.enabled AND p.id_of <> 'account')
      AND NOT EXISTS (SELECT FROM reclaim.cascade_receipts r WHERE r.customer_id = one AND r.status = 'pending') THEN v_now END
    FROM unnest(p_customers) AS one ON CONFLICT DO NOTHING;
END
$$;
REVOKE ALL ON FUNCTION reclaim.erasure_begin FROM PUBLIC;
