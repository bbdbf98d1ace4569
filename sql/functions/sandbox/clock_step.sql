-- Moves the sandbox's clock ahead by up to p_left_ms: to the first moment at which a reminder is due on the way, when its mails
-- are queued as the leader would have queued them, else all of it. A reminder is due until the next one is: a stop at half of
-- the shortest such time after the first finds all that became due since. p_before_ms: RECLAIM_REMINDERS; empty: no stops.
-- outcome: moved, or not_a_sandbox, too_far; moved_ms: by how much; queued: how many mails.
--
-- Several at the same time add up: each moves the clock from where the others have left it.
CREATE OR REPLACE FUNCTION reclaim.clock_step(p_left_ms bigint, p_before_ms bigint[], OUT outcome text, OUT moved_ms bigint,
  OUT queued bigint)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_most bigint := 315360000000; -- 3650 days
  v_before bigint[] := ARRAY(SELECT DISTINCT one FROM unnest(p_before_ms) AS one
    WHERE (SELECT i.mails FROM reclaim.installation i) ORDER BY one DESC);
  v_until bigint[] := v_before[2:] || 0::bigint; -- when the next one is due, or the deletion
  v_now timestamptz;
  v_shift interval;
  v_sandbox boolean;
  v_stop timestamptz;
  v_promised integer;
BEGIN
  moved_ms := 0;
  queued := 0;
  SELECT i.clock_shift, i.sandbox INTO v_shift, v_sandbox FROM reclaim.installation i FOR UPDATE;
  IF NOT v_sandbox THEN
    outcome := 'not_a_sandbox';
    RETURN;
  ELSIF extract(epoch FROM v_shift) * 1000 + p_left_ms > v_most THEN
    outcome := 'too_far';
    RETURN;
  END IF;
  v_now := clock_timestamp() + v_shift;
  moved_ms := p_left_ms;
  IF cardinality(v_before) > 0 THEN
    SELECT min(due.first) INTO v_stop FROM unnest(v_before) AS before CROSS JOIN LATERAL (
      SELECT min(c.deletion_effective_at) - before * interval '1 millisecond' AS first FROM reclaim.customer_customers c
      WHERE c.status = 'frozen' AND c.hold_at IS NULL
        AND c.deletion_effective_at > v_now + before * interval '1 millisecond'
        AND c.deletion_effective_at <= v_now + (before + p_left_ms) * interval '1 millisecond') AS due;
    moved_ms := coalesce(least(p_left_ms, ceil(extract(epoch FROM v_stop - v_now) * 1000)::bigint
      + (SELECT min(before - until) / 2 FROM unnest(v_before, v_until) AS gap (before, until))), p_left_ms);
  END IF;
  UPDATE reclaim.installation SET clock_shift = v_shift + moved_ms * interval '1 millisecond',
      clock_moved_at = coalesce(clock_moved_at, clock_timestamp());
  FOR i IN 1 .. cardinality(v_before) LOOP
    LOOP
      v_promised := reclaim.remind(v_before[i], v_until[i], 1000);
      EXIT WHEN v_promised = 0;
      queued := queued + v_promised;
    END LOOP;
  END LOOP;
  outcome := 'moved';
  PERFORM pg_notify('reclaim_customers', '');
END
$$;
REVOKE ALL ON FUNCTION reclaim.clock_step FROM PUBLIC;
