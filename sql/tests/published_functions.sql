-- The functions for other programs work for a role that has nothing but USAGE on the schema and EXECUTE on that one.
BEGIN;
SET LOCAL client_min_messages = error; -- the functions tell of each lock
SELECT plan(21);

CREATE ROLE tap_program;
GRANT USAGE ON SCHEMA reclaim TO tap_program;
INSERT INTO reclaim.customer_customers (id) VALUES ('00000000-0000-4000-8000-000000000001');

-- What the call returns to the role that was granted this function only, as text; or the error.
CREATE FUNCTION pg_temp.alone(p_function text, p_call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_result text;
BEGIN
  BEGIN
    EXECUTE format('GRANT EXECUTE ON FUNCTION reclaim.%s TO tap_program', p_function);
    SET LOCAL ROLE tap_program;
    EXECUTE 'SELECT r::text FROM reclaim.' || p_call || ' r' INTO v_result;
    RAISE EXCEPTION USING ERRCODE = 'RTAP1';
  EXCEPTION WHEN SQLSTATE 'RTAP1' THEN
    RETURN v_result;
  WHEN insufficient_privilege THEN
    RETURN SQLERRM;
  END;
END
$$;

CREATE TEMP TABLE published (function text, call text, expected text);
INSERT INTO published VALUES
  ('check_rate_limit(text, integer, integer)', $$check_rate_limit('tap:key', 1, 60)$$, '(t,1,0)'),
  ('cleanup_old_rate_limit_buckets()', 'cleanup_old_rate_limit_buckets()', '0'),
  ('email_to_lock_id(text)', $$email_to_lock_id(' User@example.com')$$, '-5419621966426725984'),
  ('generate_lock_id(text, text)', $$generate_lock_id('cleanup', 'User@example.com')$$, '-5856563423239081834'),
  ('acquire_cleanup_lock(text)', $$acquire_cleanup_lock('tap@example.com')$$, 'true'),
  ('release_cleanup_lock(text)', $$release_cleanup_lock('tap@example.com')$$, 'true'),
  ('customer_is_active(uuid)', $$customer_is_active('00000000-0000-4000-8000-000000000001')$$, 'true'),
  ('account_status()', 'account_status()', NULL),
  ('account_is_active()', 'account_is_active()', 'false'),
  ('custom_access_token_hook(jsonb)', $$custom_access_token_hook('{"claims": {}}')$$, '{"claims": {}}');
SELECT is(pg_temp.alone(function, call), expected, function || ' alone is enough') FROM published;
-- An advisory lock of the session outlives the function and the savepoint in which it was taken.
SELECT is((SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND objsubid = 1
  AND ((classid::bigint << 32) | objid::bigint) = reclaim.email_to_lock_id('tap@example.com')), 0::bigint,
  'the lock that the role took is the one that it released');

SELECT is_empty($$SELECT function FROM published WHERE NOT (SELECT prosecdef FROM pg_proc WHERE oid = ('reclaim.' || function)::regprocedure)$$,
  'they run as their owner');
SELECT is_empty($$SELECT p.oid::regprocedure FROM pg_proc p WHERE p.pronamespace = 'reclaim'::regnamespace AND p.prosecdef
    AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (p.proconfig), false)$$,
  'what runs as its owner looks at temporary tables last');
SELECT is_empty($$SELECT p.oid::regprocedure FROM pg_proc p WHERE p.pronamespace = 'reclaim'::regnamespace
    AND has_function_privilege('tap_program', p.oid, 'EXECUTE')$$, 'nothing is granted to everybody');

-- Nothing more comes with them.
CREATE FUNCTION pg_temp.as_program(p_query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_result text;
BEGIN
  BEGIN
    SET LOCAL ROLE tap_program;
    EXECUTE p_query INTO v_result;
    RAISE EXCEPTION USING ERRCODE = 'RTAP1';
  EXCEPTION WHEN SQLSTATE 'RTAP1' THEN
    RETURN v_result;
  WHEN OTHERS THEN
    RETURN SQLSTATE;
  END;
END
$$;
GRANT EXECUTE ON FUNCTION reclaim.customer_is_active(uuid) TO tap_program;
SELECT is(pg_temp.as_program('SELECT count(*) FROM reclaim.customer_customers'), '42501', 'no table');
SELECT is(pg_temp.as_program($$SELECT reclaim.normalise_email('x')$$), '42501', 'no other function');

SELECT is(pg_temp.as_program($$SELECT reclaim.customer_is_active('00000000-0000-4000-8000-000000000002')$$), 'false', 'an unknown customer is not active');
SELECT is(pg_temp.as_program('SELECT reclaim.customer_is_active(NULL)'), 'false', 'nor is none');
UPDATE reclaim.customer_customers SET status = 'frozen' WHERE id = '00000000-0000-4000-8000-000000000001';
SELECT is(reclaim.customer_is_active('00000000-0000-4000-8000-000000000001'), false, 'nor a frozen one');

-- As in a policy of the product: every row asks.
CREATE TABLE tap_notes (customer_id uuid);
INSERT INTO tap_notes VALUES ('00000000-0000-4000-8000-000000000001');
GRANT SELECT ON tap_notes TO tap_program;
ALTER TABLE tap_notes ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON tap_notes USING (reclaim.customer_is_active(customer_id));
SELECT is(pg_temp.as_program('SELECT count(*) FROM tap_notes'), '0', 'rows of a frozen customer are hidden');
INSERT INTO reclaim.customer_customers (id) VALUES ('00000000-0000-4000-8000-000000000003');
INSERT INTO tap_notes VALUES ('00000000-0000-4000-8000-000000000003');
SELECT is(pg_temp.as_program('SELECT count(*) FROM tap_notes'), '1', 'those of an active one are not');

SELECT * FROM finish();
ROLLBACK;
