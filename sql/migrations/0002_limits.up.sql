-- Exact limits: one store, one lock, many requests decided in one statement.

-- Requests admitted under a key in one bucket, the last of them at last_at. A row counts in full until last_at has left
-- the window, so that no request stops counting early and none counts longer than the window.
--
-- Under a limit of up to 100 each microsecond is a bucket of its own. Larger limits have a hundred buckets a window, and
-- bucket_time is the end of the bucket: never before last_at, so that a range of bucket_time finds every row that
-- counts, whatever window it was written under. Rows without last_at, written by other programs, count from bucket_time.
--
-- No index on the time alone: pruning goes by each key's tier and reads the whole table anyway, and with a choice
-- PostgreSQL may count a key by walking everybody's buckets of its window.
CREATE TABLE reclaim.rate_limits (
  key text NOT NULL,
  bucket_time timestamptz NOT NULL,
  count integer NOT NULL DEFAULT 1,
  last_at timestamptz,
  PRIMARY KEY (key, bucket_time)
) WITH (fillfactor = 50);

-- How long the buckets of a tier (the key up to its first colon) are needed.
CREATE TABLE reclaim.rate_limit_tiers (
  tier text PRIMARY KEY,
  window_seconds integer NOT NULL CHECK (window_seconds > 0)
);

-- The time that limits go by. A function of its own, so that tests can move it.
CREATE FUNCTION reclaim.limit_clock() RETURNS timestamptz
LANGUAGE sql VOLATILE SET search_path = pg_catalog
AS 'SELECT clock_timestamp()';

-- The rows of a key that count at p_now. The range is a hundredth longer than the window for programs that name a bucket
-- after its beginning. Without a SET clause, so that it is inlined where it is called and planned with it.
CREATE FUNCTION reclaim.limit_rows(p_key text, p_seconds integer, p_now timestamptz)
RETURNS TABLE (last_at timestamptz, count integer)
LANGUAGE sql STABLE
AS $$
  SELECT coalesce(r.last_at, r.bucket_time), r.count
  FROM reclaim.rate_limits r
  WHERE r.key = p_key AND r.bucket_time > p_now - pg_catalog.make_interval(secs => p_seconds * 1.01::float8)
    AND coalesce(r.last_at, r.bucket_time) > p_now - pg_catalog.make_interval(secs => p_seconds)
$$;

-- Microseconds until a key that counts p_count, its limit or more, has room for one: its rows leave the window in the
-- order of their last admissions, and enough of them must have left. Never more than the window: a last admission that
-- lies ahead, on a clock that was set back, is taken to be now. Inlined likewise.
CREATE FUNCTION reclaim.limit_wait(p_key text, p_limit integer, p_seconds integer, p_count integer, p_now timestamptz)
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

-- Decides many requests at once, in the order given, each wholly or not at all.
--
-- Key k may be charged up to p_limits[k] times in p_windows[k] seconds. Request i has three places for keys, at
-- p_requests[3i-2 … 3i]: numbers of keys, 0 for none. A request is admitted when each of its keys has room, and then
-- charges all of them; a refused one charges none.
--
-- Answers with one row: which requests were admitted; what each place's key counts afterwards; and for each key, in
-- microseconds from now, when its oldest row leaves the window and when it will admit one more (0: at once).
--
-- The lock is taken by a statement of its own: under READ COMMITTED the statements after it see what its last holder
-- committed, and the clock is read only then.
--
-- A plan is made once and kept for as long as its session: planning for each call would take longer than deciding, and a
-- plan made while the table was small must not read all of a large one. Nothing here is worth compiling.
CREATE FUNCTION reclaim.admit(p_keys text[], p_limits integer[], p_windows integer[], p_requests integer[],
  OUT admitted boolean[], OUT counts integer[], OUT leaves_us bigint[], OUT waits_us bigint[])
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_now timestamptz;
  v_count integer[];
  v_oldest timestamptz[];
  v_ahead boolean;
  v_charged integer[] := array_fill(0, ARRAY[cardinality(p_keys)]);
  v_place integer;
  v_key integer;
  v_room boolean;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'limits are exact under READ COMMITTED only' USING ERRCODE = 'invalid_transaction_state';
  END IF;
  PERFORM pg_advisory_xact_lock(7233173838382854240);
  v_now := reclaim.limit_clock();

  SELECT array_agg(c.total ORDER BY k.k), array_agg(c.oldest ORDER BY k.k), bool_or(c.ahead)
  INTO v_count, v_oldest, v_ahead
  FROM unnest(p_keys, p_windows) WITH ORDINALITY AS k(key, seconds, k)
  CROSS JOIN LATERAL (
    SELECT coalesce(sum(r.count), 0)::integer AS total, least(min(r.last_at), v_now) AS oldest,
      max(r.last_at) > v_now AS ahead
    FROM reclaim.limit_rows(k.key, k.seconds, v_now) r
  ) c;

  -- The clock was set back. What was admitted before counts from now on, or obeying a wait would not admit.
  IF v_ahead THEN
    UPDATE reclaim.rate_limits r SET last_at = v_now
    WHERE r.key = ANY (p_keys) AND coalesce(r.last_at, r.bucket_time) > v_now;
  END IF;

  admitted := array_fill(false, ARRAY[cardinality(p_requests) / 3]);
  counts := array_fill(0, ARRAY[cardinality(p_requests)]);
  FOR v_request IN 1 .. cardinality(p_requests) / 3 LOOP
    v_room := true;
    FOR v_place IN 3 * v_request - 2 .. 3 * v_request LOOP
      v_key := p_requests[v_place];
      IF v_key > 0 AND v_count[v_key] >= p_limits[v_key] THEN
        v_room := false;
      END IF;
    END LOOP;
    admitted[v_request] := v_room;
    FOR v_place IN 3 * v_request - 2 .. 3 * v_request LOOP
      v_key := p_requests[v_place];
      IF v_key > 0 THEN
        IF v_room THEN
          v_count[v_key] := v_count[v_key] + 1;
          v_charged[v_key] := v_charged[v_key] + 1;
        END IF;
        counts[v_place] := v_count[v_key];
      END IF;
    END LOOP;
  END LOOP;

  INSERT INTO reclaim.rate_limits AS r (key, bucket_time, count, last_at)
  SELECT k.key, CASE WHEN k.most <= 100 THEN v_now
      ELSE date_bin(k.width, v_now - interval '1 microsecond', timestamptz 'epoch') + k.width END, k.charged, v_now
  FROM (SELECT u.key, u.most, u.charged, make_interval(secs => u.seconds / 100.0::float8) AS width
    FROM unnest(p_keys, p_limits, p_windows, v_charged) AS u(key, most, seconds, charged) WHERE u.charged > 0) k
  ON CONFLICT (key, bucket_time) DO UPDATE
  SET count = r.count + excluded.count, last_at = greatest(r.last_at, excluded.last_at);

  SELECT
    array_agg(round(1000000 * date_part('epoch', k.oldest + make_interval(secs => k.seconds) - v_now))::bigint
      ORDER BY k.k),
    array_agg(CASE WHEN k.count < k.most THEN 0 ELSE coalesce(
      (SELECT w.wait_us FROM reclaim.limit_wait(k.key, k.most, k.seconds, k.count, v_now) w), 0) END ORDER BY k.k)
  INTO leaves_us, waits_us -- no wait for a key that was reset meanwhile
  FROM unnest(p_keys, p_limits, p_windows, v_count, v_oldest) WITH ORDINALITY
    AS k(key, most, seconds, count, oldest, k);
END
$$;

-- One key, for other programs: the same store, lock and arithmetic. retry_after is in whole seconds, rounded up, and at
-- most the window.
CREATE FUNCTION reclaim.check_rate_limit(p_key text, p_limit integer, p_window_seconds integer)
RETURNS TABLE (allowed boolean, current_count integer, retry_after integer)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_tier text := split_part(p_key, ':', 1);
  v_decision record;
  v_old timestamptz;
BEGIN
  IF p_key IS NULL OR p_limit IS NULL OR p_limit < 1 OR p_window_seconds IS NULL OR p_window_seconds < 1 THEN
    RAISE EXCEPTION 'check_rate_limit wants a key, a limit of at least 1 and a window of at least 1 second'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  v_decision := reclaim.admit(ARRAY[p_key], ARRAY[p_limit], ARRAY[p_window_seconds], ARRAY[1, 0, 0]);

  IF NOT EXISTS (SELECT 1 FROM reclaim.rate_limit_tiers t WHERE t.tier = v_tier AND t.window_seconds >= p_window_seconds)
  THEN
    INSERT INTO reclaim.rate_limit_tiers AS t (tier, window_seconds) VALUES (v_tier, p_window_seconds)
    ON CONFLICT (tier) DO UPDATE SET window_seconds = greatest(t.window_seconds, excluded.window_seconds);
  END IF;
  v_old := reclaim.limit_clock() - make_interval(secs => 2.0 *
    (SELECT t.window_seconds FROM reclaim.rate_limit_tiers t WHERE t.tier = v_tier));
  DELETE FROM reclaim.rate_limits r
  WHERE r.key = p_key AND r.bucket_time <= v_old AND coalesce(r.last_at, r.bucket_time) <= v_old;

  RETURN QUERY SELECT v_decision.admitted[1], v_decision.counts[1],
    CASE WHEN v_decision.admitted[1] THEN 0 ELSE greatest(1, ceil(v_decision.waits_us[1] / 1000000.0)::integer) END;
END
$$;

-- Deletes rows that no limit can need any more: last admissions older than twice their tier's window, two hours where no
-- window is known. Answers with how many.
CREATE FUNCTION reclaim.cleanup_old_rate_limit_buckets() RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
DECLARE
  v_deleted integer;
BEGIN
  DELETE FROM reclaim.rate_limits r
  WHERE coalesce(r.last_at, r.bucket_time) <= reclaim.limit_clock() - make_interval(secs => 2.0 * coalesce(
    (SELECT t.window_seconds FROM reclaim.rate_limit_tiers t WHERE t.tier = split_part(r.key, ':', 1)), 3600));
  GET DIAGNOSTICS v_deleted = ROW_COUNT;
  RETURN v_deleted;
END
$$;

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA reclaim FROM PUBLIC;
