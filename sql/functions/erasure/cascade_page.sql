-- One page of one participant's work, for up to so many customers at once, in the caller's transaction, so that every row
-- deleted is counted. idle: nothing is due. busy: another session works on it. page: rows were deleted. split: one of these
-- customers cannot be erased, ask for one at a time. failed: recorded, and tried again.
--
-- JIT and sequential scans off: these are indexed look-ups, compiling costs more than it saves, and a plan made for few
-- customers would not fit many.
CREATE OR REPLACE FUNCTION reclaim.cascade_page(p_participant text, p_customers integer, OUT outcome text, OUT customers integer,
  OUT finished integer, OUT erased bigint, OUT error text)
LANGUAGE plpgsql SET search_path = pg_catalog SET enable_seqscan = off SET plan_cache_mode = force_custom_plan SET jit = off
AS $$
DECLARE
  v_now timestamptz;  -- real: pauses between tries
  v_date timestamptz; -- the installation's: what the ledger shows
  v_p reclaim.cascade_participants;
  v_ids uuid[];
  v_page record;
  v_message text;
  v_where text;
  v_all boolean := false;
BEGIN
  customers := 0; finished := 0; erased := 0;
  IF NOT pg_try_advisory_xact_lock(1919247214, hashtext(p_participant)) THEN
    outcome := 'busy';
    RETURN;
  END IF;
  v_now := clock_timestamp();
  v_date := reclaim.now();
  SELECT * INTO v_p FROM reclaim.cascade_participants WHERE name = p_participant AND kind = 'table' AND enabled
    AND retry_at <= v_now;
  IF FOUND THEN
    v_ids := reclaim.cascade_due(p_participant, v_p.id_of, v_now, p_customers);
  END IF;
  customers := coalesce(cardinality(v_ids), 0);
  IF customers = 0 THEN
    outcome := 'idle';
    RETURN;
  END IF;
  BEGIN
    v_page := reclaim.cascade_delete(v_p, v_ids);
  EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS v_message = MESSAGE_TEXT, v_where = CONSTRAINT_NAME;
    -- PostgreSQL's own messages name objects and are kept; a trigger's message may name people and is not.
    error := SQLSTATE || CASE WHEN left(SQLSTATE, 2) IN ('42', 'RC') THEN ' ' || left(v_message, 200)
                              WHEN v_where <> '' THEN ' ' || v_where ELSE '' END;
  END;
  IF error IS NOT NULL THEN
    IF left(error, 2) = '40' THEN
      outcome := 'busy';
    ELSIF left(error, 2) IN ('08', '42', '53', '54', '55', '57', '58', 'XX') THEN
      outcome := 'failed';
      v_all := true; -- for every customer: the participant pauses, its receipts stay due
      PERFORM reclaim.cascade_put_off(p_participant);
    ELSIF customers > 1 THEN
      outcome := 'split';
    ELSE
      outcome := 'failed';
    END IF;
    IF outcome = 'failed' THEN
      UPDATE reclaim.cascade_receipts r SET status = 'failed', tries = tries + 1, error = cascade_page.error,
          first_tried_at = coalesce(first_tried_at, v_date), last_tried_at = v_date,
          next_try_at = CASE WHEN v_all THEN next_try_at ELSE v_now + reclaim.pause_after(tries + 1) END
        WHERE participant = p_participant AND customer_id = ANY (v_ids) AND coalesce(status, '') NOT IN ('done', 'kept');
    END IF;
    RETURN;
  END IF;

  outcome := 'page';
  finished := customers - cardinality(v_page.remaining);
  erased := coalesce((SELECT sum(one) FROM unnest(v_page.counts) AS one), 0);
  PERFORM reclaim.cascade_write(p_participant, v_ids, v_page.counted, v_page.counts, v_page.remaining, v_date);
  IF v_p.tries > 0 THEN
    UPDATE reclaim.cascade_participants SET tries = 0, retry_at = '-infinity' WHERE name = p_participant;
  END IF;
  PERFORM reclaim.erasures_settle(ARRAY(SELECT unnest(v_ids) EXCEPT SELECT unnest(v_page.remaining)));
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_page FROM PUBLIC;
