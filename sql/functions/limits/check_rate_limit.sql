-- One key, for other programs: the same store and arithmetic. retry_after is in whole seconds, rounded up, and at most the
-- window. The key stays locked until the caller's transaction ends; nothing else does. Callers of keys of their own never
-- wait for Reclaim, nor Reclaim for them. The windows of Reclaim's own tiers are recorded by Reclaim alone.
CREATE OR REPLACE FUNCTION reclaim.check_rate_limit(p_key text, p_limit integer, p_window_seconds integer)
RETURNS TABLE (allowed boolean, current_count integer, retry_after integer)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_tier text := split_part(p_key, ':', 1);
  v_own boolean := reclaim.limit_tier_is_own(v_tier);
  v_decision record;
  v_old timestamptz;
BEGIN
  IF p_key IS NULL OR p_limit IS NULL OR p_limit < 1 OR p_window_seconds IS NULL OR p_window_seconds < 1 THEN
    RAISE EXCEPTION 'check_rate_limit wants a key, a limit of at least 1 and a window of at least 1 second'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  v_decision := reclaim.admit_batch(ARRAY[p_key], ARRAY[p_limit], ARRAY[p_window_seconds], ARRAY[1], 1,
    CASE WHEN v_own THEN 1919247216 ELSE 1919247217 END, NULL);

  -- The row of a tier is shared by its keys. While an open transaction is recording a window, others do not wait: the next
  -- call records theirs, and rows without a recorded window are kept for two hours.
  IF NOT v_own AND NOT EXISTS (
    SELECT 1 FROM reclaim.rate_limit_tiers t WHERE t.tier = v_tier AND t.window_seconds >= p_window_seconds)
  THEN
    IF pg_try_advisory_xact_lock(1919247218, hashtext(v_tier)) THEN
      INSERT INTO reclaim.rate_limit_tiers AS t (tier, window_seconds) VALUES (v_tier, p_window_seconds)
      ON CONFLICT (tier) DO UPDATE SET window_seconds = greatest(t.window_seconds, excluded.window_seconds);
    END IF;
  END IF;
  v_old := reclaim.limit_clock() - make_interval(secs => 2.0 *
    (SELECT greatest(t.window_seconds, p_window_seconds) FROM reclaim.rate_limit_tiers t WHERE t.tier = v_tier));
  DELETE FROM reclaim.rate_limits r
  WHERE r.key = p_key AND r.bucket_time = ANY (ARRAY(
    SELECT o.bucket_time FROM reclaim.rate_limits o
    WHERE o.key = p_key AND o.bucket_time <= v_old AND coalesce(o.last_at, o.bucket_time) <= v_old
    LIMIT 1000 FOR UPDATE SKIP LOCKED));

  RETURN QUERY SELECT v_decision.admitted[1], v_decision.counts[1],
    CASE WHEN v_decision.admitted[1] THEN 0 ELSE greatest(1, ceil(v_decision.waits_us[1] / 1000000.0)::integer) END;
END
$$;
REVOKE ALL ON FUNCTION reclaim.check_rate_limit FROM PUBLIC;
