-- sql/standalone.sql has been run on a bare database.
BEGIN;
SELECT plan(24);

PREPARE columns AS
  SELECT attname::text COLLATE "default", format_type(atttypid, atttypmod) COLLATE "default", attnotnull, pg_get_expr(adbin, adrelid) COLLATE "default"
  FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
  WHERE attrelid = 'auth.users'::regclass AND attnum > 0 ORDER BY attnum;
SELECT results_eq('columns', $$VALUES
    ('id', 'uuid', true, 'gen_random_uuid()'),
    ('email', 'character varying(255)', false, NULL),
    ('encrypted_password', 'character varying(255)', false, NULL),
    ('email_confirmed_at', 'timestamp with time zone', false, NULL),
    ('last_sign_in_at', 'timestamp with time zone', false, NULL),
    ('is_sso_user', 'boolean', true, 'false'),
    ('is_anonymous', 'boolean', true, 'false'),
    ('deleted_at', 'timestamp with time zone', false, NULL),
    ('banned_until', 'timestamp with time zone', false, NULL),
    ('raw_app_meta_data', 'jsonb', false, NULL),
    ('created_at', 'timestamp with time zone', false, 'now()')$$,
  'auth.users is what Supabase Auth has, as far as Reclaim uses it');
SELECT col_is_pk('auth', 'users', 'id', 'users have an id');
SELECT has_index('auth', 'users', 'users_email_partial_key', ARRAY['email'], 'addresses are indexed');
SELECT index_is_unique('auth', 'users', 'users_email_partial_key', 'and unique');
SELECT has_index('auth', 'users', 'users_email_sso_idx', ARRAY['email'], 'those of single sign-on users as well');

INSERT INTO auth.users (id, email) VALUES
  ('00000000-0000-4000-8000-000000000001', 'one@example.com'), ('00000000-0000-4000-8000-000000000002', 'two@example.com');
SELECT throws_ok($$INSERT INTO auth.users (email) VALUES ('one@example.com')$$, '23505', NULL,
  'an address registers once');
SELECT lives_ok(
  $$INSERT INTO auth.users (email, is_sso_user) VALUES ('one@example.com', true), ('one@example.com', true)$$,
  'single sign-on aside');
SELECT lives_ok($$INSERT INTO auth.users (is_anonymous) VALUES (true), (true)$$, 'and people without one');

SELECT fk_ok('public', 'companies', 'owner_admin_uuid', 'auth', 'users', 'id');
SELECT fk_ok('public', 'company_admins', 'admin_uuid', 'auth', 'users', 'id');
SELECT fk_ok('public', 'company_admins', 'company_id', 'public', 'companies', 'id');
SELECT has_index('public', 'companies', 'companies_owner_admin_uuid_idx', ARRAY['owner_admin_uuid'], 'owners are indexed');
SELECT has_index('public', 'company_admins', 'company_admins_pkey', ARRAY['admin_uuid', 'company_id'],
  'administrators are indexed, and come first');
SELECT is_empty(
  $$SELECT attrelid::regclass, attname FROM pg_attribute
    WHERE attrelid IN ('public.companies'::regclass, 'public.company_admins'::regclass) AND attnum > 0
      AND attname NOT IN ('owner_admin_uuid', 'admin_uuid', 'company_id') AND NOT atthasdef$$,
  'everything beyond the columns that say who owns what has a default');

SELECT lives_ok($$INSERT INTO companies (id, owner_admin_uuid)
  VALUES ('00000000-0000-4000-8000-00000000000c', '00000000-0000-4000-8000-000000000001')$$, 'a company needs an owner only');
SELECT lives_ok($$INSERT INTO company_admins (admin_uuid, company_id)
  VALUES ('00000000-0000-4000-8000-000000000002', '00000000-0000-4000-8000-00000000000c')$$, 'and may have others');
SELECT throws_ok($$DELETE FROM auth.users WHERE email = 'one@example.com'$$, '23503', NULL, 'an owner cannot be deleted');
SELECT lives_ok($$DELETE FROM auth.users WHERE email = 'two@example.com'$$, 'another administrator can');
SELECT is_empty('SELECT 1 FROM company_admins', 'and is then none any more');

-- Repeated, with something of the user's own where some of it was.
ALTER TABLE auth.users ADD COLUMN of_the_user text;
DROP INDEX auth.users_email_partial_key;
DROP TABLE public.company_admins;
\ir ../standalone.sql
SELECT has_column('auth', 'users', 'of_the_user', 'a table that exists is left alone');
SELECT hasnt_index('auth', 'users', 'users_email_partial_key', 'with the indexes it has');
SELECT has_table('public', 'company_admins', 'what is missing is created');
SELECT is((SELECT count(*) FROM companies), 1::bigint, 'rows stay');

DROP TABLE public.company_admins, public.companies, auth.users;
DROP SCHEMA auth;
CREATE SCHEMA auth;
COMMENT ON SCHEMA auth IS 'of the user';
\ir ../standalone.sql
SELECT is(obj_description('auth'::regnamespace, 'pg_namespace'), 'of the user', 'an auth schema that exists is used');

SELECT * FROM finish();
ROLLBACK;
