-- The newest schema is in place.
BEGIN;
SELECT plan(23);

SELECT has_schema('reclaim');
SELECT has_table('reclaim', 'installation', 'the installation is known');
SELECT columns_are('reclaim', 'installation', ARRAY['key_fingerprint', 'clock_shift', 'demo', 'created_at', 'grace', 'mails', 'expired_until', 'ownership', 'freeze_limit', 'customers', 'sandbox', 'clock_moved_at', 'cooldown', 'proof_generation', 'epoch', 'restored_at', 'journal_from']);
SELECT col_type_is('reclaim', 'installation', 'key_fingerprint', 'text', 'the fingerprint is text');
SELECT col_is_null('reclaim', 'installation', 'key_fingerprint', 'it may be missing until the first start');
SELECT col_not_null('reclaim', 'installation', 'created_at', 'when it was installed is known');
SELECT is((SELECT count(*) FROM reclaim.installation), 1::bigint, 'there is one installation');
SELECT throws_ok('INSERT INTO reclaim.installation DEFAULT VALUES', '23505', NULL, 'and never a second one');

SELECT ok(NOT has_schema_privilege('public', 'reclaim', 'USAGE, CREATE'), 'PUBLIC cannot use the schema');
SELECT is_empty(
  $$SELECT oid::regprocedure FROM pg_proc
    WHERE pronamespace = 'reclaim'::regnamespace AND has_function_privilege('public', oid, 'EXECUTE')$$,
  'PUBLIC can execute no function in it');
SELECT is_empty(
  $$SELECT c.oid::regclass, acl.privilege_type FROM pg_class c, aclexplode(c.relacl) AS acl
    WHERE c.relnamespace = 'reclaim'::regnamespace AND acl.grantee = 0$$,
  'PUBLIC has no right on any table, view or sequence in it');

-- The installation's time.
CREATE FUNCTION pg_temp.explain(query text) RETURNS SETOF text LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off
AS $$ BEGIN RETURN QUERY EXECUTE 'EXPLAIN (COSTS off) ' || query; END $$;
CREATE FUNCTION pg_temp.shift(by interval) RETURNS void LANGUAGE sql AS $$ UPDATE reclaim.installation SET clock_shift = by $$;
CREATE FUNCTION pg_temp.ahead(at timestamptz, by interval) RETURNS boolean LANGUAGE sql
AS $$ SELECT at BETWEEN clock_timestamp() + by - interval '1 minute' AND clock_timestamp() + by $$;
SELECT ok(pg_temp.ahead(reclaim.now(), '0'), 'it is the real time at first');
SELECT isnt(reclaim.now(), now(), 'and goes on within a transaction');
SELECT pg_temp.shift('31 days');
SELECT ok(pg_temp.ahead(reclaim.now(), '31 days'), 'it is ahead by the shift');
SELECT ok(pg_temp.ahead(reclaim.limit_clock(), '0'), 'limits do not follow it');
SELECT throws_ok('UPDATE reclaim.installation SET clock_shift = NULL', '23502', NULL, 'there is always one');
SELECT matches((SELECT string_agg(line, E'\n') FROM pg_temp.explain(
    'SELECT FROM reclaim.verification_codes WHERE expires_at < (SELECT reclaim.now())') AS line),
  'Index Cond: \(expires_at < \$0\).*InitPlan 1', 'in a condition it is evaluated once, and the index serves');

INSERT INTO reclaim.customer_customers (id) VALUES ('10000000-0000-4000-8000-000000000001'), ('10000000-0000-4000-8000-000000000002'),
  ('10000000-0000-4000-8000-000000000003');
UPDATE reclaim.customer_customers SET status = 'frozen' WHERE id = '10000000-0000-4000-8000-000000000001';
UPDATE reclaim.customer_customers SET status = 'frozen', tm_deletion_scheduled = reclaim.now() - interval '1 day'
  WHERE id = '10000000-0000-4000-8000-000000000002';
CREATE FUNCTION pg_temp.one(n integer) RETURNS reclaim.customer_customers LANGUAGE sql
AS $$ SELECT c FROM reclaim.customer_customers c WHERE id = ('10000000-0000-4000-8000-00000000000' || n)::uuid $$;
SELECT ok(pg_temp.ahead((pg_temp.one(1)).tm_deletion_scheduled, '31 days'), 'a freeze gets it');
SELECT ok(pg_temp.ahead((pg_temp.one(2)).tm_deletion_scheduled, '30 days'), 'a freeze of an earlier time keeps that');
SELECT pg_temp.shift('800 days');
UPDATE reclaim.customer_customers SET tm_delete = reclaim.now() WHERE id = '10000000-0000-4000-8000-000000000003';
SELECT is((pg_temp.one(3)).status, 'deleted', 'a deletion of today is none far ahead');
SELECT ok(pg_temp.ahead((pg_temp.one(3)).tm_delete, '800 days'), 'and keeps its time');
SELECT is(reclaim.remind(7 * 86400000::bigint, 0, 10), 0, 'it is too late for reminders');
SELECT pg_temp.shift('55 days');
SELECT is(reclaim.remind(7 * 86400000::bigint, 0, 10), 2, 'reminders are due by it');

SELECT * FROM finish();
ROLLBACK;
