-- Locks by address, codes and the log of clean-ups.
BEGIN;
SET LOCAL client_min_messages = warning; -- the functions tell of each lock
SELECT plan(38);

-- Addresses and the numbers that stand for them; the expected ones are computed by another program.
SELECT is(reclaim.normalise_email(E' \t\r\n\fSomeone@Example.COM\n '), 'someone@example.com', 'white space and case do not count');
SELECT is(reclaim.normalise_email('ÜNAL@example.com'), 'Ünal@example.com', 'only ASCII letters have a lower case');
SELECT is(reclaim.normalise_email(NULL), NULL, 'nothing stays nothing');
SELECT is(reclaim.email_to_lock_id('user@example.com'), -5419621966426725984, 'the first eight bytes of a SHA-256, with their sign');
SELECT is(reclaim.email_to_lock_id('someone@example.com'), 8235253338125334224);
SELECT is(reclaim.email_to_lock_id(E'\tUSER@example.com '), reclaim.email_to_lock_id('user@example.com'), 'however it is written');
SELECT isnt(reclaim.email_to_lock_id('user@example.com'), reclaim.email_to_lock_id('user@example.org'));
SELECT is(reclaim.generate_lock_id('cleanup', 'User@example.com'), -5856563423239081834, 'a name space comes before the address');
SELECT is(reclaim.generate_lock_id('registration', 'user@example.com'), 8062536846379771938);
SELECT is((SELECT count(DISTINCT reclaim.email_to_lock_id('user' || n || '@example.com')) FROM generate_series(1, 10000) n),
  10000::bigint, 'ten thousand addresses have ten thousand locks');
SELECT is((SELECT count(*) FROM generate_series(1, 1000) n WHERE reclaim.email_to_lock_id('user' || n || '@example.com') < 0)
  BETWEEN 400 AND 600, true, 'half of them negative');

-- The session's locks, looked up by the two halves of their key.
CREATE FUNCTION pg_temp.held(email text) RETURNS bigint LANGUAGE sql AS $$
  SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND pid = pg_backend_pid()
    AND ((classid::bigint << 32) | objid::bigint) = reclaim.email_to_lock_id(email) $$;

SELECT is(pg_temp.held('a@example.com'), 0::bigint, 'nobody holds it');
SELECT is(reclaim.acquire_cleanup_lock('a@example.com'), true, 'it is to be had');
SELECT is(pg_temp.held('A@example.com '), 1::bigint, 'and seen');
SELECT is(reclaim.acquire_cleanup_lock(' A@EXAMPLE.COM'), true, 'a session that has it gets it again');
SELECT is(reclaim.release_cleanup_lock('a@example.com'), true, 'releasing it once');
SELECT is(pg_temp.held('a@example.com'), 1::bigint, 'leaves it held');
SELECT is(reclaim.release_cleanup_lock('a@example.com'), true, 'releasing it as often as it was taken');
SELECT is(pg_temp.held('a@example.com'), 0::bigint, 'frees it');
SET LOCAL client_min_messages = error; -- a warning is what is wanted here; tests/service/locks.test.js reads it
SELECT is(reclaim.release_cleanup_lock('a@example.com'), false, 'what is not held cannot be released');
SET LOCAL client_min_messages = warning;
SELECT is(reclaim.acquire_cleanup_lock(NULL), NULL, 'no address, no lock');

-- What Reclaim itself takes has the same key, and goes with its transaction.
SAVEPOINT work;
SELECT is(pg_try_advisory_xact_lock(reclaim.email_to_lock_id('b@example.com')), true);
SELECT is(pg_temp.held('b@example.com'), 1::bigint, 'a transaction’s lock is on the same key');
ROLLBACK TO SAVEPOINT work;
SELECT is(pg_temp.held('b@example.com'), 0::bigint, 'and ends with it');

-- Tables
SELECT columns_are('reclaim', 'verification_codes',
  ARRAY['email_hash', 'user_id', 'code_hash', 'code_salt', 'expires_at', 'tries', 'log_id', 'created_at', 'network_tries']);
SELECT col_is_pk('reclaim', 'verification_codes', 'email_hash', 'an address has one code at most');
SELECT has_index('reclaim', 'verification_codes', 'verification_codes_expires_at_idx', 'the expired are found fast');
SELECT columns_are('reclaim', 'auth_cleanup_log',
  ARRAY['id', 'correlation_id', 'email_hash', 'ip_hash', 'step', 'status', 'error_code', 'orphan_classification', 'created_at',
    'updated_at']);
SELECT has_index('reclaim', 'auth_cleanup_log', 'auth_cleanup_log_correlation_id_idx', 'a request is traced fast');
SELECT has_index('reclaim', 'auth_cleanup_log', 'auth_cleanup_log_email_hash_idx', 'so is an address');
SELECT lives_ok($$INSERT INTO reclaim.auth_cleanup_log (correlation_id, email_hash, step, status)
  VALUES (gen_random_uuid(), 'x', 'request-code', 'pending')$$, 'a clean-up begins pending');
SELECT throws_ok($$INSERT INTO reclaim.auth_cleanup_log (correlation_id, email_hash, step, status)
  VALUES (gen_random_uuid(), 'x', 'request-code', 'other')$$, '23514', NULL, 'and is never anything but pending, completed or failed');

SELECT columns_are('reclaim', 'auth_cleanup_events',
  ARRAY['id', 'log_id', 'correlation_id', 'email_hash', 'network_hash', 'kind', 'outcome', 'detail', 'sqlstate', 'constraint_name',
    'count', 'counted_from', 'created_at']);
SELECT has_index('reclaim', 'auth_cleanup_events', 'auth_cleanup_events_correlation_id_idx', 'a step is found by its own id');
SELECT has_index('reclaim', 'auth_cleanup_events', 'auth_cleanup_events_email_hash_idx', 'and an address by its hash');
SELECT throws_ok($$INSERT INTO reclaim.auth_cleanup_events (kind, outcome) VALUES ('other', 'x')$$, '23514', NULL, 'an event is a step, a mail or refusals');

SELECT is_empty($$SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'reclaim'::regnamespace
  AND has_function_privilege('public', oid, 'EXECUTE')$$, 'PUBLIC takes no locks');
SELECT is((SELECT count(*) FROM pg_proc WHERE pronamespace = 'reclaim'::regnamespace AND proname ~ 'lock|normalise'
  AND NOT coalesce(array_to_string(proconfig, ' ') ~ 'search_path=pg_catalog', false)), 0::bigint, 'none of them trusts a search path');

SELECT * FROM finish();
ROLLBACK;
