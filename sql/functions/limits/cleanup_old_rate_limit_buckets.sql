-- Deletes rows that no limit needs: last admissions older than twice their tier's window, two hours where no
-- window is known. Returns how many.
CREATE OR REPLACE FUNCTION reclaim.cleanup_old_rate_limit_buckets() RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_deleted integer;
BEGIN
  DELETE FROM reclaim.rate_limits r
  WHERE coalesce(r.last_at, r.bucket_time) <= reclaim.limit_clock() - make_interval(secs => 2.0 * coalesce(
    (SELECT t.window_seconds FROM reclaim.rate_limit_tiers t WHERE t.tier = split_part(r.key, ':', 1)), 3600));
  GET DIAGNOSTICS v_deleted = ROW_COUNT;
  RAISE NOTICE 'Cleaned up % old rate limit buckets', v_deleted;
  RETURN v_deleted;
END
$$;
REVOKE ALL ON FUNCTION reclaim.cleanup_old_rate_limit_buckets FROM PUBLIC;
