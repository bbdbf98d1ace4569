-- Limits by a plain count of requests, on a clock that stands until it is moved.
BEGIN;
SELECT plan(148);

CREATE OR REPLACE FUNCTION reclaim.limit_clock() RETURNS timestamptz LANGUAGE sql VOLATILE
AS $$ SELECT current_setting('test.now')::timestamptz $$;

CREATE FUNCTION at(p_time text) RETURNS void LANGUAGE sql
AS $$ SELECT set_config('test.now', '2030-01-01 ' || p_time || 'Z', true) $$;

CREATE FUNCTION wait(p_wait interval) RETURNS void LANGUAGE sql
AS $$ SELECT set_config('test.now', (reclaim.limit_clock() + p_wait)::text, true) $$;

CREATE FUNCTION kept(p_key text) RETURNS text LANGUAGE sql
AS $$ SELECT string_agg((bucket_time AT TIME ZONE 'UTC')::time || '=' || count, ' ' ORDER BY bucket_time)
      FROM reclaim.rate_limits WHERE key = p_key $$;

CREATE FUNCTION told(p_key text, p_limit integer, p_seconds integer) RETURNS text LANGUAGE sql
AS $$ SELECT format('%s %s %s', allowed, current_count, retry_after)
      FROM reclaim.check_rate_limit(p_key, p_limit, p_seconds) $$;

-- What there is
SELECT columns_are('reclaim', 'rate_limits', ARRAY['key', 'bucket_time', 'count', 'last_at']);
SELECT col_type_is('reclaim', 'rate_limits', 'key', 'text', 'a key is text');
SELECT col_type_is('reclaim', 'rate_limits', 'bucket_time', 'timestamp with time zone', 'a bucket has a time');
SELECT col_type_is('reclaim', 'rate_limits', 'count', 'integer', 'a count is an integer');
SELECT col_default_is('reclaim', 'rate_limits', 'count', '1', 'a bucket begins with one');
SELECT col_is_pk('reclaim', 'rate_limits', ARRAY['key', 'bucket_time'], 'a key has one row a bucket');
SELECT col_not_null('reclaim', 'rate_limits', 'count', 'a count is known');
SELECT col_type_is('reclaim', 'rate_limits', 'last_at', 'timestamp with time zone', 'a last admission has a time');
SELECT col_is_null('reclaim', 'rate_limits', 'last_at', 'programs that know the older columns need not give it');
SELECT has_function('reclaim', 'check_rate_limit', ARRAY['text', 'integer', 'integer']);
SELECT is(pg_get_function_result('reclaim.check_rate_limit'::regproc),
  'TABLE(allowed boolean, current_count integer, retry_after integer)', 'it tells whether, how many and how long');
SELECT function_returns('reclaim', 'cleanup_old_rate_limit_buckets', '{}'::name[], 'integer');

-- Up to the limit and over it
SELECT at('12:00:00.5');
SELECT is(told('a', 3, 60), 't 1 0', 'the first of three is let in');
SELECT is(told('a', 3, 60), 't 2 0', 'the second too');
SELECT is(told('a', 3, 60), 't 3 0', 'and the third');
SELECT is(kept('a'), '12:00:00.5=3', 'requests of one microsecond share a row');
SELECT is(told('a', 3, 60), 'f 3 60', 'somebody refused is never asked to wait longer than the window');
SELECT is(told('a', 3, 60), 'f 3 60', 'nor is the fifth');
SELECT is(kept('a'), '12:00:00.5=3', 'a refusal counts nothing');
SELECT is(told('b', 3, 60), 't 1 0', 'another key has a count of its own');

-- How long, to the microsecond: an admission counts until it is 60 seconds old
SELECT at('12:00:00.999999');
SELECT is(told('c', 1, 60), 't 1 0', 'let in at the very end of a second');
SELECT is(told('c', 1, 60), 'f 1 60', '60 s to go');
SELECT at('12:00:01');
SELECT is(told('c', 1, 60), 'f 1 60', '59.999999 s to go');
SELECT at('12:00:01.999998');
SELECT is(told('c', 1, 60), 'f 1 60', '59.000001 s to go');
SELECT at('12:00:01.999999');
SELECT is(told('c', 1, 60), 'f 1 59', '59 s to go');
SELECT at('12:00:59.999999');
SELECT is(told('c', 1, 60), 'f 1 1', '1 s to go');
SELECT at('12:01:00');
SELECT is(told('c', 1, 60), 'f 1 1', 'a little less is a second still');
SELECT at('12:01:00.999998');
SELECT is(told('c', 1, 60), 'f 1 1', 'a microsecond is a second, never none');
SELECT at('12:01:00.999999');
SELECT is(told('c', 1, 60), 't 1 0', 'the window has passed: let in');
SELECT at('12:02:00');
SELECT is((SELECT string_agg(told('h', 1, 3600), ',') FROM generate_series(1, 2)), 't 1 0,f 1 3600',
  'an hour is 3600 seconds');

-- Whoever waits as told is let in, whoever comes a second too early is not
CREATE FUNCTION obeyed(OUT let_in integer, OUT early integer, OUT refusals integer, OUT long integer) LANGUAGE plpgsql AS $$
DECLARE
  v_told record;
  v_from text;
BEGIN
  let_in := 0;
  early := 0;
  refusals := 0;
  long := 0;
  FOR n IN 1 .. 100 LOOP
    PERFORM at('13:00:00'), wait(n * interval '0.173311 s');
    FOR step IN 1 .. 8 LOOP
      SELECT * INTO v_told FROM reclaim.check_rate_limit('obeyed:' || n, 1 + n % 3, 1 + n % 7);
      IF NOT v_told.allowed THEN
        refusals := refusals + 1;
        long := long + (v_told.retry_after > 1 + n % 7)::integer;
        v_from := current_setting('test.now');
        PERFORM wait((v_told.retry_after - 1) * interval '1 s');
        IF v_told.retry_after > 1 AND (SELECT allowed FROM reclaim.check_rate_limit('obeyed:' || n, 1 + n % 3, 1 + n % 7)) THEN
          early := early + 1;
        END IF;
        PERFORM set_config('test.now', v_from, true), wait(v_told.retry_after * interval '1 s');
        let_in := let_in + (SELECT allowed::integer FROM reclaim.check_rate_limit('obeyed:' || n, 1 + n % 3, 1 + n % 7));
      END IF;
      PERFORM wait(n * step % 11 * interval '0.070707 s');
    END LOOP;
  END LOOP;
END $$;
CREATE TEMPORARY TABLE patience AS SELECT * FROM obeyed();
SELECT cmp_ok((SELECT refusals FROM patience), '>', 200, 'there were refusals enough to wait out');
SELECT is((SELECT let_in FROM patience), (SELECT refusals FROM patience), 'waiting as told always admits');
SELECT is((SELECT early FROM patience), 0, 'a second less never does');
SELECT is((SELECT long FROM patience), 0, 'and none is longer than its window');

-- The window slides
SELECT at('14:00:00');
SELECT is(told('s', 3, 60), 't 1 0', 'at 0 s');
SELECT at('14:00:30');
SELECT is(told('s', 3, 60), 't 2 0', 'at 30 s');
SELECT at('14:00:59.999999');
SELECT is(told('s', 3, 60), 't 3 0', 'at the end of a minute');
SELECT is(told('s', 3, 60), 'f 3 1', 'full: the first leaves at 60 s');
SELECT at('14:01:00');
SELECT is(told('s', 3, 60), 't 3 0', 'one has left, one came');
SELECT is(told('s', 3, 60), 'f 3 30', 'the next leaves at 90 s');
SELECT at('14:01:30');
SELECT is(told('s', 3, 60), 't 3 0', 'and then there is room again');
SELECT at('14:03:00');
SELECT is(told('s', 3, 60), 't 1 0', 'all have left');

-- Limits above 100 are counted in a hundred buckets a window, each named after its end
SELECT at('14:10:00.1');
SELECT is(told('w', 101, 60), 't 1 0', 'the first of 101');
SELECT at('14:10:00.6');
SELECT is(told('w', 101, 60), 't 2 0', 'the second, 0.5 s later');
SELECT is(kept('w'), '14:10:00.6=2', 'they share a bucket of 0.6 s');
SELECT at('14:10:00.600001');
SELECT is(told('w', 101, 60), 't 3 0', 'the third, a microsecond later');
SELECT is(kept('w'), '14:10:00.6=2 14:10:01.2=1', 'begins the next');
SELECT at('14:11:00.599999');
SELECT is(told('w', 3, 60), 'f 3 1', 'a bucket counts in full until its last admission has left the window');
SELECT at('14:11:00.6');
SELECT is(told('w', 3, 60), 't 2 0', 'and then not at all');
SELECT at('14:20:00.3');
SELECT is((SELECT count(*) FROM (SELECT told('x', 101, 60) AS told FROM generate_series(1, 102)) t WHERE told LIKE 't%'),
  101::bigint, 'exactly the limit is let in');
SELECT is(told('x', 101, 60), 'f 101 60', 'a full bucket asks nobody to wait longer than the window');
SELECT at('14:21:00.299999');
SELECT is(told('x', 101, 60), 'f 101 1', 'a microsecond early');
SELECT at('14:21:00.3');
SELECT is(told('x', 101, 60), 't 1 0', 'obeying admits');
SELECT is((SELECT string_agg(DISTINCT (last_at - bucket_time)::text, ' ') FROM reclaim.rate_limits WHERE last_at > bucket_time),
  NULL, 'no bucket ends before its last admission');

-- One key under two windows: buckets of the longer are wider than all of the shorter
SELECT at('14:38:25');
SELECT is((SELECT string_agg(told('two', 1000, 86400), ',') FROM generate_series(1, 2)), 't 1 0,t 2 0', 'two of a thousand a day');
SELECT at('14:48:00');
SELECT is(told('two', 1000, 86400), 't 3 0', 'ten minutes later a third');
SELECT at('14:48:50');
SELECT is(told('two', 3, 60), 'f 3 10', 'which the minute counts with all that share its bucket');
SELECT at('14:49:00');
SELECT is(told('two', 3, 60), 't 1 0', 'until it has left');

-- Rows of other programs, by the document's columns
SELECT at('14:50:00.5');
INSERT INTO reclaim.rate_limits (key, bucket_time, count) VALUES ('doc', '2030-01-01 14:50:00Z', 2);
SELECT is(told('doc', 2, 60), 'f 2 60', 'a row written without last_at counts from its bucket_time');
SELECT at('14:50:59.999999');
SELECT is(told('doc', 2, 60), 'f 2 1', 'to the microsecond');
SELECT at('14:51:00');
SELECT is(told('doc', 2, 60), 't 1 0', 'and no longer');
INSERT INTO reclaim.rate_limits (key, bucket_time, count) VALUES ('doc', '2030-01-01 14:51:00Z', 1)
ON CONFLICT (key, bucket_time) DO UPDATE SET count = rate_limits.count + 1;
SELECT is(told('doc', 2, 60), 'f 2 60', 'one more in a row of ours counts with it');
INSERT INTO reclaim.rate_limits (key, bucket_time, count) VALUES ('doc2', '2030-01-01 14:51:00Z', 1);
SELECT is(told('doc2', 2, 60), 't 2 0', 'a request at the very time of such a row');
SELECT is((SELECT count(*) FROM reclaim.rate_limits WHERE key = 'doc2' AND count = 2 AND last_at = bucket_time), 1::bigint,
  'is counted in it');
INSERT INTO reclaim.rate_limits VALUES ('begun', '2030-01-01 14:50:00Z', 101, '2030-01-01 14:50:00.6Z');
SELECT at('14:51:00.5');
SELECT is(told('begun', 101, 60), 'f 101 1', 'a bucket named after its beginning counts until its last admission has left');

-- Limits that change
SELECT at('15:00:00');
SELECT is((SELECT string_agg(told('l', 5, 60), ',') FROM generate_series(1, 2)), 't 1 0,t 2 0', 'two at 0 s');
SELECT at('15:00:10');
SELECT is((SELECT string_agg(told('l', 5, 60), ',') FROM generate_series(1, 3)), 't 3 0,t 4 0,t 5 0', 'three at 10 s');
SELECT is(told('l', 4, 60), 'f 5 50', 'four: those of 0 s must have left');
SELECT is(told('l', 3, 60), 'f 5 60', 'three: one of 10 s must have left too');
SELECT is(told('l', 6, 60), 't 6 0', 'six: there is room');
SELECT at('15:01:30');
SELECT is(told('l', 7, 60), 't 1 0', 'a window of a minute has forgotten them');
SELECT is(told('l', 7, 3600), 'f 7 3510', 'one of an hour has not');
SELECT is(told('l', 7, 86400), 'f 7 86310', 'nor has one of a day');

-- A clock that is set back lets nobody in twice, and makes nobody wait longer than the window
SELECT at('16:00:10');
SELECT is(told('back', 1, 60), 't 1 0', 'let in');
SELECT at('16:00:00');
SELECT is(told('back', 1, 60), 'f 1 60', 'what lies ahead counts as of now');
SELECT at('16:00:59.999999');
SELECT is(told('back', 1, 60), 'f 1 1', 'for a window');
SELECT at('16:01:00');
SELECT is(told('back', 1, 60), 't 1 0', 'obeying admits, though the row was written 10 s later by the clock of then');
SELECT at('15:00:00');
SELECT is(told('back', 2, 60), 'f 2 60', 'set back by an hour: all that is kept counts as of now');
SELECT at('15:01:00');
SELECT is(told('back', 2, 60), 't 1 0', 'and obeying admits');

-- Old buckets
SELECT at('18:00:00');
INSERT INTO reclaim.rate_limits (key, bucket_time, count) SELECT k, reclaim.limit_clock() - a * interval '1 s', 1
FROM unnest(ARRAY['own:x', 'own:y', 'email:z']) k, unnest(ARRAY[60, 119, 120, 121, 3600, 7200]) a;
SELECT is(told('own:x', 9, 60), 't 1 0', 'one that is as old as the window counts no more');
SELECT is(kept('own:x'), '17:58:01=1 17:59:00=1 18:00:00=1',
  'a check deletes what is older than twice its window, and nothing younger');
SELECT is(array_length(string_to_array(kept('own:y'), ' '), 1), 6, 'nothing of another key');
SELECT is(array_length(string_to_array(kept('email:z'), ' '), 1), 6, 'least of all of a tier with a longer window');
SELECT is(told('email:z', 9, 3600), 't 5 0', 'which still counts those of its hour');
SELECT is(told('both:1', 2, 3600), 't 1 0', 'a key under two windows: an hour');
SELECT at('18:10:00');
SELECT is(told('both:1', 2, 60), 't 1 0', 'and a minute');
SELECT is(told('both:1', 2, 3600), 'f 2 3000', 'the shorter one deletes nothing that the longer one needs');

SELECT at('20:00:00');
DELETE FROM reclaim.rate_limits;
DELETE FROM reclaim.rate_limit_tiers;
INSERT INTO reclaim.rate_limit_tiers VALUES ('global', 60), ('ip', 60), ('email', 3600), ('probe', 1);
INSERT INTO reclaim.rate_limits (key, bucket_time, count) SELECT k, reclaim.limit_clock() - a * interval '1 s', 1
FROM unnest(ARRAY['global', 'ip:a', 'ip:b', 'email:c', 'probe:d', 'other:e', 'bare']) k,
  unnest(ARRAY[1, 2, 119, 120, 7199, 7200]) a;
SELECT is(reclaim.cleanup_old_rate_limit_buckets(), 3 * 3 + 5 + 3 * 1, 'the cleanup tells how many it deleted');
SELECT results_eq($$SELECT key, count(*)::integer FROM reclaim.rate_limits GROUP BY key ORDER BY key$$,
  $$VALUES ('bare', 5), ('email:c', 5), ('global', 3), ('ip:a', 3), ('ip:b', 3), ('other:e', 5), ('probe:d', 1)$$,
  'each tier by twice its own window; two hours for those that nobody declared');
SELECT is(reclaim.cleanup_old_rate_limit_buckets(), 0, 'a second time there is nothing to do');
SELECT at('20:00:00.999999');
SELECT is(reclaim.cleanup_old_rate_limit_buckets(), 0, 'a microsecond early still nothing');
SELECT at('20:00:01');
SELECT is(reclaim.cleanup_old_rate_limit_buckets(), 3 + 1 + 1 + 2, 'and then what is old enough');
INSERT INTO reclaim.rate_limits VALUES ('ip:long', reclaim.limit_clock() - interval '121 s', 2, reclaim.limit_clock() - interval '119 s'),
  ('ip:ahead', reclaim.limit_clock() + interval '1 day', 1, reclaim.limit_clock() - interval '120 s');
SELECT is(reclaim.cleanup_old_rate_limit_buckets(), 1, 'a row is as old as its last admission, whatever its bucket');
SELECT is(kept('ip:long'), '19:58:00=2', 'one that is not stays');

-- Bounded: one key asked for ten minutes, every second
DO $$ BEGIN
  PERFORM at('21:00:00');
  FOR n IN 1 .. 600 LOOP
    PERFORM FROM reclaim.check_rate_limit('steady', 1000, 60);
    PERFORM wait('1 s');
  END LOOP;
END $$;
SELECT cmp_ok((SELECT count(*) FROM reclaim.rate_limits WHERE key = 'steady'), '<=', 121::bigint, 'two windows of rows, no more');
DO $$ BEGIN
  PERFORM at('21:30:00');
  FOR n IN 1 .. 2000 LOOP
    PERFORM FROM reclaim.check_rate_limit('busy', 5000, 60);
    PERFORM wait('0.03 s');
  END LOOP;
END $$;
SELECT cmp_ok((SELECT count(*) FROM reclaim.rate_limits WHERE key = 'busy'), '<=', 101::bigint, 'a hundred buckets a window, no more');

-- Many requests at once: places are numbers of keys
CREATE FUNCTION decided(p_keys text[], p_limits integer[], p_windows integer[], p_requests integer[]) RETURNS text
LANGUAGE sql AS $$ SELECT format('%s %s %s %s', admitted, counts, leaves_us, waits_us)
  FROM reclaim.admit(p_keys, p_limits, p_windows, p_requests) $$;
SELECT at('22:00:00.25');
DELETE FROM reclaim.rate_limits;
SELECT is(decided('{global,ip:a,ip:b}', '{3,2,2}', '{60,60,3600}', '{1,2,0, 1,2,0, 1,2,0, 1,3,0, 1,3,0, 0,3,0}'),
  '{t,t,f,t,f,t} {1,1,0,2,2,0,2,2,0,3,1,0,3,1,0,0,2,0} {60000000,60000000,3600000000} {60000000,60000000,3600000000}',
  'in the order given, each wholly or not at all, each with what its keys count afterwards');
SELECT is(kept('global') || ', ' || kept('ip:a') || ', ' || kept('ip:b'), '22:00:00.25=3, 22:00:00.25=2, 22:00:00.25=2',
  'charged are those who were let in, one row a key');
SELECT is(told('global', 3, 60), 'f 3 60', 'check_rate_limit counts the same');
SELECT is(told('ip:a', 3, 60), 't 3 0', 'and what it counts');
SELECT is(decided('{ip:a}', '{3}', '{60}', '{1,0,0}'), '{f} {3,0,0} {60000000} {60000000}', 'is counted by the others');
SELECT at('22:00:30');
SELECT is(decided('{ip:a,ip:c}', '{4,4}', '{60,60}', '{1,2,0}'), '{t} {4,1,0} {30250000,60000000} {30250000,0}',
  'a key that is full tells when there will be room, one that is not tells 0; both tell when the oldest leaves');
SELECT is(decided('{global,email:q}', '{1000,3}', '{60,3600}', '{0,0,0, 1,2,0}'),
  '{t,t} {0,0,0,4,1,0} {30250000,3600000000} {0,0}', 'a request without keys is let in');
SELECT at('22:00:00');
SELECT is(decided('{ip:a,ip:c}', '{4,4}', '{60,60}', '{1,2,0}'), '{f} {4,1,0} {60000000,60000000} {60000000,0}',
  'on a clock that was set back too, nothing is told that is longer than the window');
SELECT at('22:01:00');
SELECT is(decided('{ip:a,ip:c}', '{4,4}', '{60,60}', '{1,2,0}'), '{t} {1,1,0} {60000000,60000000} {0,0}', 'and obeying admits');
SELECT is((SELECT count(*) FROM reclaim.rate_limits WHERE count < 1), 0::bigint, 'nothing is stored for nothing');

-- Soft keys are counted while there is room, and refuse nothing
CREATE FUNCTION decided_softly(p_keys text[], p_limits integer[], p_requests integer[], p_wait_ms integer DEFAULT NULL)
RETURNS text LANGUAGE sql AS $$ SELECT format('%s %s %s', admitted, counts, waits_us)
  FROM reclaim.admit_batch(p_keys, p_limits, array_fill(60, ARRAY[cardinality(p_keys)]), p_requests, 2, 1919247216, p_wait_ms) $$;
SELECT at('22:10:00');
DELETE FROM reclaim.rate_limits;
SELECT is(decided_softly('{ip:a,email-validate:b}', '{4,2}', '{1,-2, 1,-2, 1,-2, 1,-2, 1,-2}'),
  '{t,t,t,t,f} {1,1,2,2,3,-2,4,-2,4,-2} {60000000,60000000}',
  'a full one is told as a negative count; the others decide');
SELECT is(kept('ip:a') || ', ' || kept('email-validate:b'), '22:10:00=4, 22:10:00=2', 'it counts no more than its limit');
SELECT is(decided_softly('{ip:c,email-validate:d}', '{1,9}', '{1,-2, 1,-2}'), '{t,f} {1,1,1,1} {60000000,0}',
  'a request that another key refuses does not count in it');
SELECT is(decided_softly('{ip:e}', '{1}', '{0,1, 0,1}', 0), '{t,f} {0,1,0,1} {60000000}', 'without waiting it decides the same');

-- Locks: 1,024 stripes for subjects, others for what counts everyone
SELECT ok(bool_and(reclaim.limit_stripe('ip:' || n) BETWEEN 0 AND 1023), 'a subject has one of 1,024 stripes') FROM generate_series(1, 5000) n;
SELECT cmp_ok(count(DISTINCT reclaim.limit_stripe('ip:' || n)), '>', 1000::bigint, 'and nearly all of them are used') FROM generate_series(1, 10000) n;
SELECT ok(bool_and(reclaim.limit_stripe(k) > 1023), 'a key that counts everyone shares none with them') FROM unnest(ARRAY['global', 'global-validate']) k;
SELECT is((SELECT array_agg(DISTINCT classid::bigint ORDER BY classid::bigint) FROM pg_locks
    WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND classid IN (1919247216, 1919247217)),
  '{1919247216,1919247217}'::bigint[], 'keys of other programs have a class of their own');

-- Windows of Reclaim's own tiers
DELETE FROM reclaim.rate_limit_tiers;
SELECT reclaim.limit_declare_tier('ip', 60);
SELECT lives_ok($$SELECT reclaim.check_rate_limit('ip:x', 9, 86400)$$, 'another program asks with a longer window');
SELECT is((SELECT window_seconds FROM reclaim.rate_limit_tiers WHERE tier = 'ip'), 60, 'and does not widen the recorded one');
SELECT lives_ok($$SELECT reclaim.check_rate_limit('email:x', 9, 86400)$$, 'nor does it record one that is missing');
SELECT is_empty($$SELECT 1 FROM reclaim.rate_limit_tiers WHERE tier = 'email'$$, 'Reclaim does');
SELECT lives_ok($$SELECT reclaim.check_rate_limit('theirs:x', 9, 86400)$$, 'a tier of its own');
SELECT is((SELECT window_seconds FROM reclaim.rate_limit_tiers WHERE tier = 'theirs'), 86400, 'is recorded as it says');
SELECT reclaim.limit_declare_tier('ip', 3600);
SELECT is((SELECT window_seconds FROM reclaim.rate_limit_tiers WHERE tier = 'ip'), 3600, 'a longer window takes effect at once');
SELECT reclaim.limit_declare_tier('ip', 60);
SELECT is((SELECT window_seconds FROM reclaim.rate_limit_tiers WHERE tier = 'ip'), 3600, 'a shorter one must wait');
SELECT wait('2 hours');
SELECT reclaim.limit_declare_tier('ip', 90);
SELECT is((SELECT window_seconds FROM reclaim.rate_limit_tiers WHERE tier = 'ip'), 3600, 'from the beginning for another value');
SELECT wait('7199.999999 s');
SELECT reclaim.limit_declare_tier('ip', 90);
SELECT is((SELECT window_seconds FROM reclaim.rate_limit_tiers WHERE tier = 'ip'), 3600, 'until rows counted under the longer one are gone');
SELECT wait('0.000001 s');
SELECT reclaim.limit_declare_tier('ip', 90);
SELECT results_eq($$SELECT window_seconds, next_seconds, next_since FROM reclaim.rate_limit_tiers WHERE tier = 'ip'$$,
  $$VALUES (90, NULL::integer, NULL::timestamptz)$$, 'twice the longer window');
SELECT reclaim.limit_declare_tier('ip', 60);
SELECT reclaim.limit_declare_tier('ip', 90);
SELECT is((SELECT next_seconds FROM reclaim.rate_limit_tiers WHERE tier = 'ip'), NULL, 'a setting that is taken back leaves it');

-- Buckets that lie ahead
SELECT at('08:00:00');
DELETE FROM reclaim.rate_limits;
INSERT INTO reclaim.rate_limits (key, bucket_time, count, last_at) VALUES
  ('ip:far', reclaim.limit_clock() + interval '1 day 1 us', 9, NULL),
  ('ip:wrong', reclaim.limit_clock(), 9, reclaim.limit_clock() + interval '10 years'),
  ('ip:near', reclaim.limit_clock() + interval '1 day', 9, NULL);
SELECT is(told('ip:far', 9, 60), 't 1 0', 'more than a day ahead: not counted');
SELECT is(told('ip:wrong', 9, 60), 't 1 0', 'whatever the bucket is called');
SELECT is(told('ip:wrong', 11, 60), 't 11 0', 'and the row counts from then on like any other');
SELECT is(told('ip:near', 9, 60), 'f 9 60', 'up to a day: a clock was set back, and it counts as of now');
INSERT INTO reclaim.rate_limits (key, bucket_time, count) VALUES ('ip:lost', reclaim.limit_clock() + interval '100 years', 1);
SELECT is(reclaim.cleanup_old_rate_limit_buckets(), 2, 'those far ahead are deleted');
SELECT is_empty($$SELECT 1 FROM reclaim.rate_limits WHERE key IN ('ip:lost') OR bucket_time > reclaim.limit_clock() + interval '1 day'$$,
  'and nothing else');

-- Pruning in pages of blocks
DELETE FROM reclaim.rate_limits;
INSERT INTO reclaim.rate_limits (key, bucket_time, count)
SELECT 'ip:' || n, reclaim.limit_clock() - CASE WHEN n % 10 = 0 THEN interval '1 s' ELSE interval '1 day' END, 1 FROM generate_series(1, 20000) n;
CREATE FUNCTION pages(p_blocks integer, OUT many integer, OUT deleted integer) LANGUAGE plpgsql AS $$
DECLARE
  v_from bigint := 0;
  v_page record;
BEGIN
  many := 0;
  deleted := 0;
  WHILE v_from IS NOT NULL LOOP
    SELECT * INTO v_page FROM reclaim.limit_prune_page(v_from, p_blocks);
    many := many + 1;
    deleted := deleted + v_page.deleted;
    v_from := v_page.next;
  END LOOP;
END $$;
CREATE TEMPORARY TABLE paged AS SELECT * FROM pages(50);
SELECT is((SELECT deleted FROM paged), 18000, 'every page deletes what is old in it');
SELECT cmp_ok((SELECT many FROM paged), '>', 3, 'there were several');
SELECT is((SELECT count(*) FROM reclaim.rate_limits), 2000::bigint, 'what counts stays');

-- Nonsense
SELECT throws_ok($$SELECT reclaim.check_rate_limit(NULL, 1, 1)$$, '22023', NULL, 'no key');
SELECT throws_ok($$SELECT reclaim.check_rate_limit('n', 0, 1)$$, '22023', NULL, 'a limit of 0');
SELECT throws_ok($$SELECT reclaim.check_rate_limit('n', 1, 0)$$, '22023', NULL, 'no window');
SELECT lives_ok($$SELECT reclaim.check_rate_limit('n', 2147483647, 2147483647)$$, 'the largest numbers are numbers too');

-- Not for everybody
SELECT is_empty($$SELECT oid::regprocedure FROM pg_proc
  WHERE pronamespace = 'reclaim'::regnamespace AND has_function_privilege('public', oid, 'EXECUTE')$$,
  'PUBLIC can execute nothing');
SELECT is_empty($$SELECT c.oid::regclass FROM pg_class c, aclexplode(c.relacl) AS acl
  WHERE c.relnamespace = 'reclaim'::regnamespace AND acl.grantee = 0$$, 'PUBLIC can read nothing');
CREATE ROLE stranger;
GRANT USAGE ON SCHEMA reclaim TO stranger; -- even then
CREATE FUNCTION as_stranger(p_sql text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  SET LOCAL ROLE stranger;
  EXECUTE p_sql;
  RESET ROLE;
  RETURN 'allowed';
EXCEPTION WHEN insufficient_privilege THEN
  RETURN 'refused';
END $$;
SELECT is(as_stranger($$SELECT reclaim.check_rate_limit('n', 1, 1)$$), 'refused', 'a stranger cannot count');
SELECT is(as_stranger($$SELECT reclaim.admit('{n}', '{1}', '{1}', '{1,0,0}')$$), 'refused', 'nor decide');
SELECT is(as_stranger($$SELECT reclaim.admit_batch('{n}', '{1}', '{1}', '{1}', 1, 1, 0)$$), 'refused', 'nor decide many');
SELECT is(as_stranger($$SELECT reclaim.cleanup_old_rate_limit_buckets()$$), 'refused', 'nor clean up');
SELECT is(as_stranger($$DELETE FROM reclaim.rate_limits$$), 'refused', 'nor reset');
GRANT EXECUTE ON FUNCTION reclaim.check_rate_limit, reclaim.cleanup_old_rate_limit_buckets TO stranger;
SELECT is(as_stranger($$SELECT reclaim.check_rate_limit('n:granted', 1, 1)$$), 'allowed', 'EXECUTE alone lets a program count');
SELECT is(as_stranger($$SELECT reclaim.cleanup_old_rate_limit_buckets()$$), 'allowed', 'and clean up');

SELECT * FROM finish();
ROLLBACK;
