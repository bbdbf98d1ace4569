-- The rows of a key that count at p_now. The range is a hundredth longer than the window, for programs that write
-- the bucket's beginning as bucket_time. Rows more than a day ahead are no admissions: a clock was wrong by more than any clock
-- is set back, or another program wrote them. Without a SET clause, so that it is inlined where it is called and planned with it.
CREATE OR REPLACE FUNCTION reclaim.limit_rows(p_key text, p_seconds integer, p_now timestamptz)
RETURNS TABLE (last_at timestamptz, count integer)
LANGUAGE sql STABLE
AS $$
  SELECT coalesce(r.last_at, r.bucket_time), r.count
  FROM reclaim.rate_limits r
  WHERE r.key = p_key AND r.bucket_time > p_now - pg_catalog.make_interval(secs => p_seconds * 1.01::float8)
    AND coalesce(r.last_at, r.bucket_time) > p_now - pg_catalog.make_interval(secs => p_seconds)
    AND coalesce(r.last_at, r.bucket_time) <= p_now + interval '1 day'
$$;
REVOKE ALL ON FUNCTION reclaim.limit_rows FROM PUBLIC;
