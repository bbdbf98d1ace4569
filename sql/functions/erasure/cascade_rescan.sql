-- Looks again at up to so many customers whose erasure is complete and for whom that is due: 1 hour, 1 day and 30 days after it,
-- when a billing account came late (reclaim.erasure_late), and when asked. Supabase Storage is asked later, by its API. Rows that came after the receipt make it due again, and the ledger says so; what was written into rows that
-- Reclaim looks after itself is cleared again at once. A customer whose id is in use again is left alone. One that cannot be looked at
-- does not keep the others from it, and its turn comes again in an hour, nor does a table that is locked. trouble: what could not be looked at.
CREATE OR REPLACE FUNCTION reclaim.cascade_rescan(p_customers integer, OUT looked integer, OUT found integer, OUT trouble text)
LANGUAGE plpgsql SET search_path = pg_catalog SET enable_seqscan = off SET plan_cache_mode = force_custom_plan SET jit = off
  SET lock_timeout = '3s'
AS $$
DECLARE
  v_count ALIAS FOR $3; -- found: that name alone is plpgsql's own variable
  v_now timestamptz := reclaim.now();
  v_ids uuid[];
  v_left uuid[];
  v_found uuid[] := '{}';
  v_own record;
  v_kept text[];
  v_changed uuid[];
  v_p reclaim.cascade_participants;
BEGIN
  v_count := 0;
  WITH late AS (
    DELETE FROM reclaim.erasure_late l USING reclaim.erasures e WHERE e.customer_id = l.customer_id AND e.completed_at IS NOT NULL
      RETURNING l.customer_id)
  UPDATE reclaim.erasures e SET rescan_at = v_now FROM (SELECT DISTINCT customer_id FROM late) AS l WHERE l.customer_id = e.customer_id;
  v_ids := ARRAY(SELECT customer_id FROM reclaim.erasures WHERE rescan_at <= v_now AND completed_at IS NOT NULL
    ORDER BY rescan_at LIMIT p_customers FOR UPDATE);
  looked := cardinality(v_ids);
  IF looked = 0 THEN
    RETURN;
  END IF;
  UPDATE reclaim.erasures e SET rescan_at = (SELECT min(e.completed_at + pause)
      FROM unnest('{1 hour,1 day,30 days}'::interval[]) AS pause WHERE e.completed_at + pause > v_now)
    WHERE e.customer_id = ANY (v_ids);
  v_ids := ARRAY(SELECT one FROM unnest(v_ids) AS one WHERE NOT EXISTS (
    SELECT FROM reclaim.customer_customers c WHERE c.id = one AND c.status <> 'deleted'));
  v_kept := ARRAY(SELECT reclaim.erasures_kept(v_ids));
  v_own := reclaim.rescan_owns(v_ids);
  trouble := v_own.trouble;
  UPDATE reclaim.erasures SET rescan_at = v_now + interval '1 hour' WHERE customer_id = ANY (v_own.failed);
  FOR v_p IN SELECT * FROM reclaim.cascade_participants WHERE kind = 'table' AND enabled ORDER BY name LOOP
    BEGIN
      v_left := reclaim.cascade_left(v_p, v_ids);
    EXCEPTION WHEN OTHERS THEN
      trouble := concat_ws(', ', trouble, v_p.name || ' ' || SQLSTATE);
      CONTINUE;
    END;
    IF v_left <> '{}' THEN
      WITH due AS (
        UPDATE reclaim.cascade_receipts SET status = 'pending', done_at = NULL, late_at = v_now, next_try_at = clock_timestamp()
          WHERE participant = v_p.name AND customer_id = ANY (v_left) AND status = 'done' RETURNING customer_id),
      new AS (
        INSERT INTO reclaim.cascade_receipts (customer_id, participant, late_at)
          SELECT one, v_p.name, v_now FROM unnest(v_left) AS one WHERE v_p.id_of = 'account'
          ON CONFLICT DO NOTHING RETURNING customer_id)
      SELECT v_found || coalesce(array_agg(customer_id), '{}') INTO v_found FROM (TABLE due UNION ALL TABLE new) AS late;
    END IF;
  END LOOP;
  INSERT INTO reclaim.storage_checks (customer_id, participant)
    SELECT r.customer_id, r.participant FROM reclaim.cascade_receipts r JOIN reclaim.cascade_participants p ON p.name = r.participant
      WHERE r.customer_id = ANY (v_ids) AND r.status = 'done' AND p.kind = 'storage' AND p.enabled
    ON CONFLICT DO NOTHING;
  -- Another certificate is due, too, when something is kept no longer, or something else is.
  v_changed := v_found || v_own.changed || ARRAY(SELECT DISTINCT left(kept, 36)::uuid FROM (
    (SELECT unnest(v_kept) EXCEPT SELECT reclaim.erasures_kept(v_ids)) UNION ALL
    (SELECT reclaim.erasures_kept(v_ids) EXCEPT SELECT unnest(v_kept))) AS other (kept));
  UPDATE reclaim.erasures SET reopened_at = v_now, completed_at = NULL, certificate_id = NULL, rescan_at = NULL,
      settled_at = CASE WHEN NOT customer_id = ANY (v_found) THEN v_now END
    WHERE customer_id = ANY (v_changed);
  GET DIAGNOSTICS v_count = ROW_COUNT;
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_rescan FROM PUBLIC;
