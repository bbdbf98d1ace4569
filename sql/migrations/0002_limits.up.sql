-- Exact limits: one store, one lock, many requests decided in one statement.

-- Requests admitted under a key in the second that begins at bucket_time. A bucket counts until its end has left the
-- window, so that no request stops counting early.
--
-- No index on the time alone: pruning goes by each key's tier and reads the whole table anyway, and with a choice
-- PostgreSQL may count a key by walking everybody's buckets of its window.
CREATE TABLE reclaim.rate_limits (
  key text NOT NULL,
  bucket_time timestamptz NOT NULL,
  count integer NOT NULL DEFAULT 1,
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

-- Microseconds until a key that counts p_count, its limit or more, has room for one: its buckets leave the window oldest
-- first, and enough of them must have left.
CREATE FUNCTION reclaim.limit_wait_us(p_key text, p_limit integer, p_seconds integer, p_count integer,
  p_now timestamptz) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT ceil(extract(epoch FROM b.bucket_time + make_interval(secs => p_seconds + 1.0) - p_now) * 1000000)::bigint
  FROM (
    SELECT r.bucket_time, sum(r.count) OVER (ORDER BY r.bucket_time) AS left_by_then
    FROM reclaim.rate_limits r
    WHERE r.key = p_key AND r.bucket_time > p_now - make_interval(secs => p_seconds + 1.0)
  ) b
  WHERE p_count - b.left_by_then < p_limit
  ORDER BY b.bucket_time
  LIMIT 1
$$;

-- Decides many requests at once, in the order given, each wholly or not at all.
--
-- Key k may be charged up to p_limits[k] times in p_windows[k] seconds. Request i has three places for keys, at
-- p_requests[3i-2 … 3i]: numbers of keys, 0 for none. A request is admitted when each of its keys has room, and then
-- charges all of them; a refused one charges none.
--
-- Answers with one row: which requests were admitted; what each place's key counts afterwards; and for each key, in
-- microseconds from now, when its oldest bucket leaves the window and when it will admit one more (0: at once).
--
-- The lock is taken by a statement of its own: under READ COMMITTED the statements after it see what its last holder
-- committed, and the clock is read only then.
--
-- A plan is kept for as long as its session: one made while the table was small must not read all of a large one.
-- Nothing here runs long enough to be worth compiling.
CREATE FUNCTION reclaim.admit(p_keys text[], p_limits integer[], p_windows integer[], p_requests integer[],
  OUT admitted boolean[], OUT counts integer[], OUT leaves_us bigint[], OUT waits_us bigint[])
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_now timestamptz;
  v_count integer[];
  v_oldest timestamptz[];
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

  SELECT array_agg(c.total ORDER BY k.k), array_agg(c.oldest ORDER BY k.k) INTO v_count, v_oldest
  FROM unnest(p_keys, p_windows) WITH ORDINALITY AS k(key, seconds, k)
  CROSS JOIN LATERAL (
    SELECT coalesce(sum(r.count), 0)::integer AS total,
      coalesce(min(r.bucket_time), date_trunc('second', v_now)) AS oldest
    FROM reclaim.rate_limits r
    WHERE r.key = k.key AND r.bucket_time > v_now - make_interval(secs => k.seconds + 1.0)
  ) c;

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

  INSERT INTO reclaim.rate_limits AS r (key, bucket_time, count)
  SELECT k.key, date_trunc('second', v_now), k.charged
  FROM unnest(p_keys, v_charged) AS k(key, charged) WHERE k.charged > 0
  ON CONFLICT (key, bucket_time) DO UPDATE SET count = r.count + excluded.count;

  SELECT
    array_agg(ceil(extract(epoch FROM k.oldest + make_interval(secs => k.seconds + 1.0) - v_now) * 1000000)::bigint
      ORDER BY k.k),
    array_agg(CASE WHEN k.count < k.most THEN 0
      ELSE coalesce(reclaim.limit_wait_us(k.key, k.most, k.seconds, k.count, v_now), 0) END ORDER BY k.k)
  INTO leaves_us, waits_us
  FROM unnest(p_keys, p_limits, p_windows, v_count, v_oldest) WITH ORDINALITY
    AS k(key, most, seconds, count, oldest, k);
END
$$;

-- One key, for other programs: the same store, lock and arithmetic. retry_after is in whole seconds, rounded up.
CREATE FUNCTION reclaim.check_rate_limit(p_key text, p_limit integer, p_window_seconds integer)
RETURNS TABLE (allowed boolean, current_count integer, retry_after integer)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_tier text := split_part(p_key, ':', 1);
  v_decision record;
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
  DELETE FROM reclaim.rate_limits r
  WHERE r.key = p_key AND r.bucket_time <= reclaim.limit_clock() - make_interval(secs => 1 + 2.0 *
    (SELECT t.window_seconds FROM reclaim.rate_limit_tiers t WHERE t.tier = v_tier));

  RETURN QUERY SELECT v_decision.admitted[1], v_decision.counts[1],
    CASE WHEN v_decision.admitted[1] THEN 0
      ELSE greatest(1, least(ceil(v_decision.waits_us[1] / 1000000.0), 2147483647)::integer) END;
END
$$;

-- Deletes buckets that no limit can need any more: older than twice their tier's window, two hours where no window is
-- known. Answers with how many.
CREATE FUNCTION reclaim.cleanup_old_rate_limit_buckets() RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
DECLARE
  v_deleted integer;
BEGIN
  DELETE FROM reclaim.rate_limits r
  WHERE r.bucket_time <= reclaim.limit_clock() - make_interval(secs => 1 + 2.0 * coalesce(
    (SELECT t.window_seconds FROM reclaim.rate_limit_tiers t WHERE t.tier = split_part(r.key, ':', 1)), 3600));
  GET DIAGNOSTICS v_deleted = ROW_COUNT;
  RETURN v_deleted;
END
$$;

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA reclaim FROM PUBLIC;
