-- The newest schema is in place.
BEGIN;
SELECT plan(11);

SELECT has_schema('reclaim');
SELECT has_table('reclaim', 'installation', 'the installation is known');
SELECT columns_are('reclaim', 'installation', ARRAY['key_fingerprint', 'created_at']);
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

SELECT * FROM finish();
ROLLBACK;
