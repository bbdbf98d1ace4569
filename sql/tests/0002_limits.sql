-- Limits by the book, on a clock that stands until it is moved.
BEGIN;
SELECT plan(80);

CREATE OR REPLACE FUNCTION reclaim.limit_clock() RETURNS timestamptz LANGUAGE sql VOLATILE
AS $$ SELECT current_setting('test.now')::timestamptz $$;

CREATE FUNCTION at(p_time text) RETURNS void LANGUAGE sql
AS $$ SELECT set_config('test.now', '2030-01-01 ' || p_time || 'Z', true) $$;

CREATE FUNCTION wait(p_wait interval) RETURNS void LANGUAGE sql
AS $$ SELECT set_config('test.now', (reclaim.limit_clock() + p_wait)::text, true) $$;

CREATE FUNCTION kept(p_key text) RETURNS text LANGUAGE sql
AS $$ SELECT string_agg(to_char(bucket_time AT TIME ZONE 'UTC', 'HH24:MI:SS') || '=' || count, ' ' ORDER BY bucket_time)
      FROM reclaim.rate_limits WHERE key = p_key $$;

CREATE FUNCTION told(p_key text, p_limit integer, p_seconds integer) RETURNS text LANGUAGE sql
AS $$ SELECT format('%s %s %s', allowed, current_count, retry_after)
      FROM reclaim.check_rate_limit(p_key, p_limit, p_seconds) $$;

-- What there is
SELECT columns_are('reclaim', 'rate_limits', ARRAY['key', 'bucket_time', 'count']);
SELECT col_type_is('reclaim', 'rate_limits', 'key', 'text', 'a key is text');
SELECT col_type_is('reclaim', 'rate_limits', 'bucket_time', 'timestamp with time zone', 'a bucket has a time');
SELECT col_type_is('reclaim', 'rate_limits', 'count', 'integer', 'a count is an integer');
SELECT col_default_is('reclaim', 'rate_limits', 'count', '1', 'a bucket begins with one');
SELECT col_is_pk('reclaim', 'rate_limits', ARRAY['key', 'bucket_time'], 'a key has one bucket a second');
SELECT col_not_null('reclaim', 'rate_limits', 'count', 'a count is known');
SELECT has_function('reclaim', 'check_rate_limit', ARRAY['text', 'integer', 'integer']);
SELECT is(pg_get_function_result('reclaim.check_rate_limit'::regproc),
  'TABLE(allowed boolean, current_count integer, retry_after integer)', 'it tells whether, how many and how long');
SELECT function_returns('reclaim', 'cleanup_old_rate_limit_buckets', '{}'::name[], 'integer');

-- Up to the limit and over it
SELECT at('12:00:00.5');
SELECT is(told('a', 3, 60), 't 1 0', 'the first of three is let in');
SELECT is(told('a', 3, 60), 't 2 0', 'the second too');
SELECT is(told('a', 3, 60), 't 3 0', 'and the third');
SELECT is(kept('a'), '12:00:00=3', 'requests of one second share a bucket');
SELECT is(told('a', 3, 60), 'f 3 61', 'the fourth is refused');
SELECT is(told('a', 3, 60), 'f 3 61', 'and so is the fifth');
SELECT is(kept('a'), '12:00:00=3', 'a refusal counts nothing');
SELECT is(told('b', 3, 60), 't 1 0', 'another key has a count of its own');

-- How long, to the microsecond: the bucket of 12:00:00 counts until its end, 12:00:01, is 60 seconds old
SELECT at('12:00:00.999999');
SELECT is(told('c', 1, 60), 't 1 0', 'let in at the very end of a second');
SELECT is(told('c', 1, 60), 'f 1 61', '60.000001 s to go');
SELECT at('12:00:01');
SELECT is(told('c', 1, 60), 'f 1 60', '60 s to go');
SELECT at('12:00:01.000001');
SELECT is(told('c', 1, 60), 'f 1 60', '59.999999 s to go');
SELECT at('12:00:02');
SELECT is(told('c', 1, 60), 'f 1 59', '59 s to go');
SELECT at('12:01:00');
SELECT is(told('c', 1, 60), 'f 1 1', '1 s to go');
SELECT at('12:01:00.000001');
SELECT is(told('c', 1, 60), 'f 1 1', 'a little less is a second still');
SELECT at('12:01:00.999999');
SELECT is(told('c', 1, 60), 'f 1 1', 'a microsecond is a second, never none');
SELECT at('12:01:01');
SELECT is(told('c', 1, 60), 't 1 0', 'the window has passed: let in');

-- Whoever waits as told is let in, whoever comes a second too early is not
CREATE FUNCTION obeyed(OUT let_in integer, OUT early integer, OUT refusals integer) LANGUAGE plpgsql AS $$
DECLARE
  v_told record;
  v_from text;
BEGIN
  let_in := 0;
  early := 0;
  refusals := 0;
  FOR n IN 1 .. 100 LOOP
    PERFORM at('13:00:00'), wait(n * interval '0.173311 s');
    FOR step IN 1 .. 8 LOOP
      SELECT * INTO v_told FROM reclaim.check_rate_limit('obeyed:' || n, 1 + n % 3, 1 + n % 7);
      IF NOT v_told.allowed THEN
        refusals := refusals + 1;
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

-- The window slides
SELECT at('14:00:00');
SELECT is(told('s', 3, 60), 't 1 0', 'at 0 s');
SELECT at('14:00:30');
SELECT is(told('s', 3, 60), 't 2 0', 'at 30 s');
SELECT at('14:00:59.999999');
SELECT is(told('s', 3, 60), 't 3 0', 'at the end of a minute');
SELECT is(told('s', 3, 60), 'f 3 2', 'full: the first leaves at 61 s');
SELECT at('14:01:01');
SELECT is(told('s', 3, 60), 't 3 0', 'one has left, one came');
SELECT is(told('s', 3, 60), 'f 3 30', 'the next leaves at 91 s');
SELECT at('14:01:31');
SELECT is(told('s', 3, 60), 't 3 0', 'and then there is room again');
SELECT at('14:03:00');
SELECT is(told('s', 3, 60), 't 1 0', 'all have left');

-- Limits that change
SELECT at('15:00:00');
SELECT is((SELECT string_agg(told('l', 5, 60), ',') FROM generate_series(1, 2)), 't 1 0,t 2 0', 'two at 0 s');
SELECT at('15:00:10');
SELECT is((SELECT string_agg(told('l', 5, 60), ',') FROM generate_series(1, 3)), 't 3 0,t 4 0,t 5 0', 'three at 10 s');
SELECT is(told('l', 4, 60), 'f 5 51', 'four: those of 0 s must have left');
SELECT is(told('l', 3, 60), 'f 5 61', 'three: one of 10 s must have left too');
SELECT is(told('l', 6, 60), 't 6 0', 'six: there is room');
SELECT at('15:01:30');
SELECT is(told('l', 7, 60), 't 1 0', 'a window of a minute has forgotten them');
SELECT is(told('l', 7, 3600), 'f 7 3511', 'one of an hour has not');
SELECT is(told('l', 7, 86400), 'f 7 86311', 'nor has one of a day');

-- A clock that is set back lets nobody in twice
SELECT at('16:00:10');
SELECT is(told('back', 1, 60), 't 1 0', 'let in');
SELECT at('16:00:00');
SELECT is(told('back', 1, 60), 'f 1 71', 'what lies ahead counts too');

-- Old buckets
SELECT at('18:00:00');
INSERT INTO reclaim.rate_limits SELECT k, reclaim.limit_clock() - a * interval '1 s', 1
FROM unnest(ARRAY['own:x', 'own:y', 'email:z']) k, unnest(ARRAY[60, 119, 120, 121, 3600, 7200]) a;
SELECT is(told('own:x', 9, 60), 't 2 0', 'those of the window count');
SELECT is(kept('own:x'), '17:58:00=1 17:58:01=1 17:59:00=1 18:00:00=1',
  'a check deletes what is older than twice its window, and nothing younger');
SELECT is(array_length(string_to_array(kept('own:y'), ' '), 1), 6, 'nothing of another key');
SELECT is(array_length(string_to_array(kept('email:z'), ' '), 1), 6, 'least of all of a tier with a longer window');
SELECT is(told('email:z', 9, 3600), 't 6 0', 'which still counts them all');
SELECT is(told('both:1', 2, 3600), 't 1 0', 'a key under two windows: an hour');
SELECT at('18:10:00');
SELECT is(told('both:1', 2, 60), 't 1 0', 'and a minute');
SELECT is(told('both:1', 2, 3600), 'f 2 3001', 'the shorter one deletes nothing that the longer one needs');

SELECT at('20:00:00');
DELETE FROM reclaim.rate_limits;
DELETE FROM reclaim.rate_limit_tiers;
INSERT INTO reclaim.rate_limit_tiers VALUES ('global', 60), ('ip', 60), ('email', 3600), ('probe', 1);
INSERT INTO reclaim.rate_limits SELECT k, reclaim.limit_clock() - a * interval '1 s', 1
FROM unnest(ARRAY['global', 'ip:a', 'ip:b', 'email:c', 'probe:d', 'other:e', 'bare']) k,
  unnest(ARRAY[2, 3, 120, 121, 7200, 7201]) a;
SELECT is(reclaim.cleanup_old_rate_limit_buckets(), 3 * 3 + 5 + 3 * 1, 'the cleanup tells how many it deleted');
SELECT results_eq($$SELECT key, count(*)::integer FROM reclaim.rate_limits GROUP BY key ORDER BY key$$,
  $$VALUES ('bare', 5), ('email:c', 5), ('global', 3), ('ip:a', 3), ('ip:b', 3), ('other:e', 5), ('probe:d', 1)$$,
  'each tier by twice its own window; two hours for those that nobody declared');
SELECT is(reclaim.cleanup_old_rate_limit_buckets(), 0, 'a second time there is nothing to do');
SELECT at('20:00:00.999999');
SELECT is(reclaim.cleanup_old_rate_limit_buckets(), 0, 'a bucket goes once all of its second is old enough');
SELECT at('20:00:01');
SELECT is(reclaim.cleanup_old_rate_limit_buckets(), 3 + 1 + 1 + 2, 'and then it does');

-- Bounded: one key asked for ten minutes, every second
DO $$ BEGIN
  PERFORM at('21:00:00');
  FOR n IN 1 .. 600 LOOP
    PERFORM FROM reclaim.check_rate_limit('steady', 1000, 60);
    PERFORM wait('1 s');
  END LOOP;
END $$;
SELECT is((SELECT count(*) FROM reclaim.rate_limits WHERE key = 'steady'), 121::bigint, 'two windows of buckets, no more');

-- Many requests at once: places are numbers of keys
CREATE FUNCTION decided(p_keys text[], p_limits integer[], p_windows integer[], p_requests integer[]) RETURNS text
LANGUAGE sql AS $$ SELECT format('%s %s %s %s', admitted, counts, leaves_us, waits_us)
  FROM reclaim.admit(p_keys, p_limits, p_windows, p_requests) $$;
SELECT at('22:00:00.25');
DELETE FROM reclaim.rate_limits;
SELECT is(decided('{global,ip:a,ip:b}', '{3,2,2}', '{60,60,3600}', '{1,2,0, 1,2,0, 1,2,0, 1,3,0, 1,3,0, 0,3,0}'),
  '{t,t,f,t,f,t} {1,1,0,2,2,0,2,2,0,3,1,0,3,1,0,0,2,0} {60750000,60750000,3600750000} {60750000,60750000,3600750000}',
  'in the order given, each wholly or not at all, each with what its keys count afterwards');
SELECT is(kept('global') || ', ' || kept('ip:a') || ', ' || kept('ip:b'), '22:00:00=3, 22:00:00=2, 22:00:00=2',
  'charged are those who were let in');
SELECT is(told('global', 3, 60), 'f 3 61', 'check_rate_limit counts the same');
SELECT is(told('ip:a', 3, 60), 't 3 0', 'and what it counts');
SELECT is(decided('{ip:a}', '{3}', '{60}', '{1,0,0}'), '{f} {3,0,0} {60750000} {60750000}', 'is counted by the others');
SELECT at('22:00:30');
SELECT is(decided('{ip:a,ip:c}', '{4,4}', '{60,60}', '{1,2,0}'), '{t} {4,1,0} {31000000,61000000} {31000000,0}',
  'a key that is full tells when there will be room, one that is not tells 0; both tell when the oldest leaves');
SELECT is(decided('{global,email:q}', '{1000,3}', '{60,3600}', '{0,0,0, 1,2,0}'),
  '{t,t} {0,0,0,4,1,0} {31000000,3601000000} {0,0}', 'a request without keys is let in');
SELECT is((SELECT count(*) FROM reclaim.rate_limits WHERE count < 1), 0::bigint, 'nothing is stored for nothing');

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
SELECT is(as_stranger($$SELECT reclaim.cleanup_old_rate_limit_buckets()$$), 'refused', 'nor clean up');
SELECT is(as_stranger($$DELETE FROM reclaim.rate_limits$$), 'refused', 'nor reset');

SELECT * FROM finish();
ROLLBACK;
