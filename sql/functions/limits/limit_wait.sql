-- Microseconds until a key whose count is p_count, its limit or more, admits one more: its rows leave the window in the
-- order of their last admissions, and enough of them must have left. Never more than the window: a last admission that
-- lies ahead, on a clock that was set back, is taken to be now. Inlined as limit_rows is.
CREATE OR REPLACE FUNCTION reclaim.limit_wait(p_key text, p_limit integer, p_seconds integer, p_count integer, p_now timestamptz)
RETURNS TABLE (wait_us bigint)
LANGUAGE sql STABLE
AS $$
  SELECT pg_catalog.round(1000000 * pg_catalog.date_part('epoch',
    least(b.last_at, p_now) + pg_catalog.make_interval(secs => p_seconds) - p_now))::bigint
  FROM (
    SELECT r.last_at, pg_catalog.sum(r.count) OVER (ORDER BY r.last_at) AS left_by_then
    FROM reclaim.limit_rows(p_key, p_seconds, p_now) r
  ) b
  WHERE p_count - b.left_by_then < p_limit
  ORDER BY b.last_at
  LIMIT 1
$$;
REVOKE ALL ON FUNCTION reclaim.limit_wait FROM PUBLIC;
