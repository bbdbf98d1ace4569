-- The demonstration's people, on top of sql/standalone.sql.
BEGIN;
SELECT plan(13);

\ir ../demo.sql

-- The state matrix: the row without single sign-on counts, and none that was deleted.
PREPARE states AS
  SELECT split_part(email, '@', 1), email_confirmed_at IS NOT NULL,
    EXISTS (SELECT FROM companies WHERE owner_admin_uuid = users.id)
      OR EXISTS (SELECT FROM company_admins WHERE admin_uuid = users.id)
  FROM auth.users
  WHERE NOT is_sso_user AND deleted_at IS NULL AND NOT is_anonymous AND id < 'd0000000-0000-4000-8000-000000000100'
  ORDER BY id;
SELECT results_eq('states', $$VALUES
    ('uma', false, false), ('viktor', true, false), ('wendy', false, true), ('olga', true, true), ('carlo', true, true),
    ('sam', true, false)$$,
  'there is somebody for every row of the state matrix');
SELECT is_empty($$SELECT FROM companies JOIN auth.users ON users.id = owner_admin_uuid WHERE email = 'carlo@example.com'$$,
  'one completed registration by helping with another''s company alone');
SELECT isnt_empty($$SELECT FROM auth.users WHERE email = 'dora@example.com' AND deleted_at < now()$$, 'one is deleted softly');
SELECT isnt_empty(
  $$SELECT FROM auth.users JOIN companies ON owner_admin_uuid = users.id WHERE email = 'sam@example.com' AND is_sso_user$$,
  'one has a complete twin of single sign-on');
SELECT isnt_empty($$SELECT FROM auth.users WHERE is_anonymous AND email IS NULL$$, 'one is anonymous');
SELECT is(
  (SELECT count(*) FROM auth.users JOIN companies ON owner_admin_uuid = users.id
   WHERE users.id > 'd0000000-0000-4000-8000-000000000100' AND email_confirmed_at < now() AND companies.name <> ''),
  30::bigint, 'thirty are complete');

SELECT is_empty(
  $$SELECT FROM auth.users WHERE email IS NOT NULL AND (email <> lower(email) OR email NOT LIKE '%@example.com')$$,
  'all addresses are in lower case and nobody''s');

CREATE EXTENSION pgcrypto SCHEMA tap;
SELECT is_empty(
  $$SELECT email FROM auth.users
    WHERE CASE WHEN is_sso_user OR is_anonymous THEN encrypted_password <> ''
      ELSE encrypted_password <> tap.crypt('demo-password', encrypted_password) END$$,
  'everybody who has a password has the one that is told');

SELECT is((SELECT count(*) FROM reclaim.cascade_participants p WHERE reclaim.cascade_lack(p) IS NULL AND table_name LIKE 'demo.%'), 14::bigint,
  'fourteen services take part in erasures');
SELECT isnt_empty($$SELECT FROM demo.contact_contacts JOIN reclaim.customer_customers c ON c.id = customer_id AND c.status = 'active'$$,
  'they have something of the customers');
DELETE FROM demo.tag_tags;
UPDATE reclaim.customer_customers SET status = 'deleted' WHERE id = 'e0000000-0000-4000-8000-000000000101';

-- What happens meanwhile: an orphan is deleted and registers again, another stays deleted.
DELETE FROM auth.users WHERE email IN ('uma@example.com', 'viktor@example.com');
INSERT INTO auth.users (id, email) VALUES ('00000000-0000-4000-8000-000000000001', 'viktor@example.com');
UPDATE auth.users SET email = 'moved@example.com' WHERE email = 'olga@example.com';
CREATE TEMPORARY TABLE people ON COMMIT DROP AS SELECT * FROM auth.users;
\ir ../demo.sql
SELECT set_eq('SELECT email FROM auth.users EXCEPT SELECT email FROM people', ARRAY['uma@example.com'],
  'whoever is missing comes back when it is repeated');
SELECT is_empty('SELECT * FROM people EXCEPT SELECT * FROM auth.users', 'and nobody is changed');

SELECT is_empty($$SELECT FROM demo.tag_tags WHERE customer_id = 'e0000000-0000-4000-8000-000000000101'$$,
  'and what was erased of a deleted customer does not come back');

SELECT * FROM finish();
ROLLBACK;
