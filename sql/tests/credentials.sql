-- Who a mailed code signs in, what most password hashes look like, and what the gates hear of sessions.
BEGIN;
SET LOCAL client_min_messages = warning;
SELECT plan(25);

-- Users: email, single sign-on, confirmed.
CREATE FUNCTION pg_temp.add(p_email text, p_sso boolean DEFAULT false, p_confirmed boolean DEFAULT true) RETURNS uuid LANGUAGE sql AS $$
  INSERT INTO auth.users (email, is_sso_user, email_confirmed_at) VALUES (p_email, p_sso, CASE WHEN p_confirmed THEN now() END)
  RETURNING id $$;
CREATE TABLE pg_temp.who AS SELECT pg_temp.add('plain@example.com') AS plain, pg_temp.add('sso@example.com', true) AS sso,
  pg_temp.add('both@example.com') AS password, pg_temp.add('both@example.com', true) AS other;

SELECT is(reclaim.sign_in_user('plain@example.com'), (SELECT plain FROM who), 'a user with a password');
SELECT is(reclaim.sign_in_user('sso@example.com'), (SELECT sso FROM who), 'a single sign-on user');
SELECT is(reclaim.sign_in_user('both@example.com'), (SELECT password FROM who), 'of two the one with a password');
INSERT INTO reclaim.customer_customers (owner_user_id) SELECT other FROM who;
SELECT is(reclaim.sign_in_user('both@example.com'), (SELECT other FROM who), 'but rather the one who owns a customer');
UPDATE reclaim.customer_customers SET status = 'deleted' WHERE owner_user_id = (SELECT other FROM who);
SELECT is(reclaim.sign_in_user('both@example.com'), (SELECT password FROM who), 'that is not deleted');
SELECT is(reclaim.sign_in_user('none@example.com'), NULL, 'nobody');
SELECT is(reclaim.sign_in_user(NULL), NULL, 'nobody');

CREATE FUNCTION pg_temp.after(p_change text) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
  v_user uuid;
BEGIN
  BEGIN
    EXECUTE 'UPDATE auth.users SET ' || p_change || ' WHERE email = ''plain@example.com''';
    v_user := reclaim.sign_in_user('plain@example.com');
    RAISE EXCEPTION USING ERRCODE = 'RTAP1';
  EXCEPTION WHEN SQLSTATE 'RTAP1' THEN
    RETURN v_user;
  END;
END $$;
SELECT is(pg_temp.after('email_confirmed_at = NULL'), NULL, 'not before the address is confirmed');
SELECT is(pg_temp.after('deleted_at = now()'), NULL, 'not deleted');
SELECT is(pg_temp.after('is_anonymous = true'), NULL, 'not anonymous');
SELECT is(pg_temp.after($$banned_until = now() + interval '1 day'$$), NULL, 'not banned');
SELECT is(pg_temp.after($$banned_until = now() - interval '1 day'$$), (SELECT plain FROM who), 'but after a ban');

-- With Supabase's column and index, rows that it wrote and rows that others did.
ALTER TABLE auth.users ADD COLUMN instance_id uuid;
SELECT is(reclaim.sign_in_user('sso@example.com'), (SELECT sso FROM who), 'without an instance');
UPDATE auth.users SET instance_id = '00000000-0000-0000-0000-000000000000';
SELECT is(reclaim.sign_in_user('sso@example.com'), (SELECT sso FROM who), 'with the only one there is');
SELECT is(reclaim.sign_in_user('plain@example.com'), (SELECT plain FROM who), 'with a password, too');

-- The most common hash.
SELECT is(reclaim.usual_password_hash(), NULL, 'none without a password');
INSERT INTO auth.users (email, encrypted_password) SELECT 'u' || n || '@example.com',
  CASE WHEN n <= 50 THEN '$2a$12$' || repeat('x', 53) WHEN n <= 80 THEN '$2a$10$' || repeat('x', 53)
    WHEN n <= 90 THEN '$argon2id$v=19$m=65536,t=3,p=4$c2FsdA$aGFzaA' WHEN n <= 200 THEN '$fbscrypt$v=1' ELSE '' END
  FROM generate_series(1, 400) n;
SELECT is(reclaim.usual_password_hash(), '$2a$12$', 'the most common kind and cost, of those that are known');
DELETE FROM auth.users WHERE encrypted_password LIKE '$2a$%';
SELECT is(reclaim.usual_password_hash(), '$argon2id$v=19$m=65536,t=3,p=4$', 'with its parameters');
UPDATE pg_class SET reltuples = 1e9 WHERE oid = 'auth.users'::regclass;
SELECT lives_ok('SELECT reclaim.usual_password_hash()', 'a sample of a large table may be empty');

-- Sessions: every change reaches the gates, the end of one that expired does not.
CREATE FUNCTION pg_temp.told() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_told text := (SELECT string_agg(kind || ' ' || left(id::text, 1), ', ' ORDER BY id) FROM reclaim.gate_ended);
BEGIN
  DELETE FROM reclaim.gate_ended;
  RETURN v_told;
END $$;
INSERT INTO reclaim.sessions (id, user_id, method, expires_at)
  SELECT (repeat(n::text, 8) || '-0000-4000-8000-000000000000')::uuid, gen_random_uuid(), 'code', clock_timestamp()
    + CASE WHEN n = 4 THEN interval '-25 hours' ELSE interval '1 hour' END FROM generate_series(1, 6) n;
SELECT is(pg_temp.told(), NULL, 'a session that begins');
UPDATE reclaim.sessions SET ended_at = now() WHERE id::text LIKE '1%';
SELECT is(pg_temp.told(), 'session 1', 'that is ended');
UPDATE reclaim.sessions SET ended_at = ended_at;
SELECT is(pg_temp.told(), NULL, 'that stays as it is');
DELETE FROM reclaim.sessions WHERE id::text ~ '^[1234]';
SELECT is(pg_temp.told(), 'session 2, session 3', 'that is deleted, unless it had ended before');
CREATE ROLE tap_ender;
GRANT USAGE ON SCHEMA reclaim TO tap_ender;
GRANT SELECT, UPDATE ON reclaim.sessions TO tap_ender;
SET LOCAL ROLE tap_ender;
UPDATE reclaim.sessions SET ended_at = now() WHERE id::text LIKE '5%';
RESET ROLE;
SELECT is(pg_temp.told(), 'session 5', 'that a role ends which has rights on that table only');
TRUNCATE reclaim.sessions;
SELECT is(pg_temp.told(), 'session 6', 'all that are left');

SELECT * FROM finish();
ROLLBACK;
