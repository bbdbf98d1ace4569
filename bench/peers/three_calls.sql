-- A common implementation of a limiter: one call for each tier, which counts, then inserts.

CREATE SCHEMA three_calls;

CREATE TABLE three_calls.rate_limits (
  key TEXT NOT NULL,
  bucket_time TIMESTAMPTZ NOT NULL,
  count INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (key, bucket_time)
);

CREATE INDEX idx_rate_limits_bucket_time ON three_calls.rate_limits (bucket_time);

CREATE FUNCTION three_calls.check_rate_limit(p_key TEXT, p_limit INTEGER, p_window_seconds INTEGER)
RETURNS TABLE (allowed BOOLEAN, current_count INTEGER, retry_after INTEGER) AS $$
DECLARE
  v_window_start TIMESTAMPTZ;
  v_current_count INTEGER;
  v_bucket_time TIMESTAMPTZ;
  v_oldest_bucket TIMESTAMPTZ;
  v_retry_seconds INTEGER;
BEGIN
  v_window_start := NOW() - (p_window_seconds || ' seconds')::INTERVAL;
  v_bucket_time := DATE_TRUNC('second', NOW());

  SELECT COALESCE(SUM(count), 0) INTO v_current_count
  FROM rate_limits
  WHERE key = p_key
    AND bucket_time > v_window_start;

  DELETE FROM rate_limits
  WHERE bucket_time <= v_window_start - (p_window_seconds || ' seconds')::INTERVAL;

  IF v_current_count >= p_limit THEN
    SELECT MIN(bucket_time) INTO v_oldest_bucket
    FROM rate_limits
    WHERE key = p_key
      AND bucket_time > v_window_start;

    v_retry_seconds := EXTRACT(EPOCH FROM (
      v_oldest_bucket + (p_window_seconds || ' seconds')::INTERVAL - NOW()
    ))::INTEGER;

    RETURN QUERY SELECT FALSE, v_current_count, v_retry_seconds;
  ELSE
    INSERT INTO rate_limits (key, bucket_time, count)
    VALUES (p_key, v_bucket_time, 1)
    ON CONFLICT (key, bucket_time)
    DO UPDATE SET count = rate_limits.count + 1;

    RETURN QUERY SELECT TRUE, v_current_count + 1, 0;
  END IF;
END;
$$ LANGUAGE plpgsql;
