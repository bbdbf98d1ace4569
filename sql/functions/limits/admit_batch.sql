-- Decides many requests at once, in the order given, each wholly or not at all.
--
-- Key k may be counted up to p_limits[k] times in p_windows[k] seconds. Request i has p_places places for keys, at
-- p_requests[p_places * (i - 1) + 1 …]: numbers of keys, 0 for none. A request is admitted when each of its keys is below its
-- limit, and then counts in all of them; a refused one counts in none. A negative number is a soft key: it refuses nothing,
-- and the request counts in it if there is room.
--
-- Returns one row: which requests were admitted; the count of each place's key afterwards, negative for a soft key that was
-- full before; and for each key, in microseconds from now, when its oldest row leaves the window and when it will admit one
-- more (0: at once).
--
-- The locks are taken by a statement of their own, in ascending order: under READ COMMITTED the statements after it see what
-- the last holders committed, and the clock is read only then. p_class tells Reclaim's own tiers, which only Reclaim's
-- instances should hold, from the keys of other programs. With p_wait_ms NULL the call waits for locks as the session does,
-- otherwise at most so long. With 0 it does not wait: requests with a key that is locked elsewhere are not decided, their
-- element of admitted is NULL, and that key's time in leaves_us is -1.
--
-- A plan is made once per session: planning each call would take longer than running it, and a plan made while the
-- table was small must not scan a large one. JIT would cost more than it saves.
CREATE OR REPLACE FUNCTION reclaim.admit_batch(p_keys text[], p_limits integer[], p_windows integer[],
  p_requests integer[], p_places integer, p_class integer, p_wait_ms integer,
  OUT admitted boolean[], OUT counts integer[], OUT leaves_us bigint[], OUT waits_us bigint[])
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_now timestamptz;
  v_waits boolean := p_wait_ms IS DISTINCT FROM 0;
  v_held boolean[]; -- by key; NULL when all are waited for
  v_unheld boolean := false;
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
  IF p_wait_ms IS NOT NULL THEN
    PERFORM set_config('lock_timeout', greatest(p_wait_ms, 100)::text, true);
  END IF;
  IF v_waits THEN
    PERFORM pg_advisory_xact_lock(p_class, s.stripe)
    FROM (SELECT DISTINCT reclaim.limit_stripe(k.key) AS stripe FROM unnest(p_keys) AS k(key) ORDER BY 1) s;
  ELSE
    SELECT array_agg(pg_try_advisory_xact_lock(p_class, reclaim.limit_stripe(k.key)) ORDER BY k.k) INTO v_held
    FROM unnest(p_keys) WITH ORDINALITY AS k(key, k);
    v_unheld := NOT true = ALL (v_held);
  END IF;
  v_now := reclaim.limit_clock();

  SELECT array_agg(c.total ORDER BY k.k), array_agg(c.oldest ORDER BY k.k), bool_or(c.ahead)
  INTO v_count, v_oldest, v_ahead
  FROM unnest(p_keys, p_windows) WITH ORDINALITY AS k(key, seconds, k)
  CROSS JOIN LATERAL (
    SELECT coalesce(sum(r.count), 0)::integer AS total, least(min(r.last_at), v_now) AS oldest,
      max(r.last_at) > v_now AS ahead
    FROM reclaim.limit_rows(k.key, k.seconds, v_now) r
  ) c;

  -- The clock was set back: earlier admissions count from now on. Otherwise a caller that waits as asked is refused again.
  -- A call that must not wait leaves it to the next one: another program may hold the rows.
  IF v_ahead AND v_waits THEN
    UPDATE reclaim.rate_limits r SET last_at = v_now
    WHERE r.key = ANY (p_keys) AND coalesce(r.last_at, r.bucket_time) > v_now
      AND coalesce(r.last_at, r.bucket_time) <= v_now + interval '1 day';
  END IF;

  admitted := array_fill(false, ARRAY[cardinality(p_requests) / p_places]);
  counts := array_fill(0, ARRAY[cardinality(p_requests)]);
  FOR v_request IN 1 .. cardinality(p_requests) / p_places LOOP
    v_room := true;
    FOR v_place IN p_places * (v_request - 1) + 1 .. p_places * v_request LOOP
      v_key := p_requests[v_place];
      IF v_key > 0 AND v_count[v_key] >= p_limits[v_key] THEN
        v_room := false;
      ELSIF v_unheld AND v_key > 0 AND NOT v_held[v_key] THEN
        v_room := v_room AND NULL;
      END IF;
    END LOOP;
    admitted[v_request] := v_room;
    FOR v_place IN p_places * (v_request - 1) + 1 .. p_places * v_request LOOP
      v_key := p_requests[v_place];
      IF v_key > 0 THEN
        IF v_room THEN
          v_count[v_key] := v_count[v_key] + 1;
          v_charged[v_key] := v_charged[v_key] + 1;
        END IF;
        counts[v_place] := v_count[v_key];
      ELSIF v_key < 0 THEN
        v_key := -v_key;
        IF v_count[v_key] >= p_limits[v_key] THEN
          counts[v_place] := -v_count[v_key];
        ELSE
          IF v_room AND v_held[v_key] IS NOT FALSE THEN
            v_count[v_key] := v_count[v_key] + 1;
            v_charged[v_key] := v_charged[v_key] + 1;
          END IF;
          counts[v_place] := v_count[v_key];
        END IF;
      END IF;
    END LOOP;
  END LOOP;

  -- A bucket of its own cannot be locked by another program.
  INSERT INTO reclaim.rate_limits AS r (key, bucket_time, count, last_at)
  SELECT k.key, CASE WHEN k.most <= 100 OR NOT v_waits THEN v_now
      ELSE date_bin(k.width, v_now - interval '1 microsecond', timestamptz 'epoch') + k.width END, k.charged, v_now
  FROM (SELECT u.key, u.most, u.charged, make_interval(secs => u.seconds / 100.0::float8) AS width
    FROM unnest(p_keys, p_limits, p_windows, v_charged) AS u(key, most, seconds, charged) WHERE u.charged > 0) k
  ON CONFLICT (key, bucket_time) DO UPDATE SET count = r.count + excluded.count, last_at = excluded.last_at;

  SELECT
    array_agg(CASE WHEN v_held[k.k::integer] IS FALSE THEN -1 ELSE
      round(1000000 * date_part('epoch', k.oldest + make_interval(secs => k.seconds) - v_now))::bigint END ORDER BY k.k),
    array_agg(CASE WHEN k.count < k.most THEN 0 ELSE coalesce(
      (SELECT w.wait_us FROM reclaim.limit_wait(k.key, k.most, k.seconds, k.count, v_now) w), 0) END ORDER BY k.k)
  INTO leaves_us, waits_us -- no wait for a key that was reset meanwhile
  FROM unnest(p_keys, p_limits, p_windows, v_count, v_oldest) WITH ORDINALITY
    AS k(key, most, seconds, count, oldest, k);
END
$$;
REVOKE ALL ON FUNCTION reclaim.admit_batch FROM PUBLIC;
