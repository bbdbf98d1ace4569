-- Records the window that Reclaim's settings give one of its tiers. A longer one takes effect at once. A shorter one waits
-- until twice the recorded window has passed since it was first declared: rows that the longer one counts live so long, and a
-- setting that is taken back finds them.
CREATE OR REPLACE FUNCTION reclaim.limit_declare_tier(p_tier text, p_seconds integer) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
DECLARE
  v_now timestamptz := reclaim.limit_clock();
BEGIN
  INSERT INTO reclaim.rate_limit_tiers AS t (tier, window_seconds) VALUES (p_tier, p_seconds)
  ON CONFLICT (tier) DO UPDATE SET window_seconds = p_seconds, next_seconds = NULL, next_since = NULL
  WHERE t.window_seconds < p_seconds OR (t.window_seconds = p_seconds AND t.next_seconds IS NOT NULL)
    OR (t.next_seconds = p_seconds AND t.next_since <= v_now - make_interval(secs => 2.0 * t.window_seconds));
  UPDATE reclaim.rate_limit_tiers t SET next_seconds = p_seconds, next_since = v_now
  WHERE t.tier = p_tier AND t.window_seconds > p_seconds
    AND (t.next_seconds IS DISTINCT FROM p_seconds OR t.next_since > v_now);
END
$$;
REVOKE ALL ON FUNCTION reclaim.limit_declare_tier FROM PUBLIC;
