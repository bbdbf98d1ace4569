-- What Supabase Auth and row-level security policies ask: the account status in tokens, and for the user of a request; which
-- addresses cool down.
BEGIN;
SELECT plan(44);

CREATE FUNCTION pg_temp.user(n integer) RETURNS uuid LANGUAGE sql IMMUTABLE AS
  $$ SELECT ('20000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
CREATE FUNCTION pg_temp.customer(n integer) RETURNS uuid LANGUAGE sql IMMUTABLE AS
  $$ SELECT ('10000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
INSERT INTO auth.users (id, email, encrypted_password, email_confirmed_at)
  SELECT pg_temp.user(n), 'user' || n || '@example.com', '', now() FROM generate_series(1, 9) AS n;
INSERT INTO reclaim.customer_customers (id, email, owner_user_id) VALUES
  (pg_temp.customer(1), 'user1@example.com', pg_temp.user(1)), (pg_temp.customer(2), '', pg_temp.user(2)),
  (pg_temp.customer(3), 'Office@Example.com', pg_temp.user(3)), (pg_temp.customer(4), 'user4@example.com', pg_temp.user(4)),
  (pg_temp.customer(5), 'user4@example.com', pg_temp.user(4));
UPDATE reclaim.customer_customers SET status = 'frozen' WHERE id = pg_temp.customer(2);
INSERT INTO reclaim.customer_members (customer_id, user_id) VALUES (pg_temp.customer(1), pg_temp.user(5)),
  (pg_temp.customer(2), pg_temp.user(5)), (pg_temp.customer(2), pg_temp.user(6)), (pg_temp.customer(3), pg_temp.user(7));

-- The role of Supabase Auth, with what docs/supabase-hooks.md has it granted, and nothing else.
CREATE ROLE tap_auth_admin;
GRANT USAGE ON SCHEMA reclaim, tap TO tap_auth_admin;
GRANT EXECUTE ON FUNCTION reclaim.custom_access_token_hook(jsonb) TO tap_auth_admin;
CREATE FUNCTION pg_temp.claims(p_user text) RETURNS jsonb LANGUAGE sql AS $$
  SELECT reclaim.custom_access_token_hook(jsonb_build_object('user_id', p_user, 'authentication_method', 'password',
    'claims', jsonb_build_object('sub', p_user, 'role', 'authenticated', 'aud', 'authenticated', 'amr', jsonb_build_array('pwd')))) -> 'claims' $$;
CREATE FUNCTION pg_temp.unchanged(p_user text) RETURNS jsonb LANGUAGE sql AS $$
  SELECT jsonb_build_object('sub', p_user, 'role', 'authenticated', 'aud', 'authenticated', 'amr', jsonb_build_array('pwd')) $$;

SET LOCAL ROLE tap_auth_admin;
SELECT is(pg_temp.claims(pg_temp.user(1)::text), pg_temp.unchanged(pg_temp.user(1)::text) || '{"account_status": "active"}',
  'the claims of an owner say active, and all the others stay');
SELECT is(pg_temp.claims(pg_temp.user(2)::text) ->> 'account_status', 'frozen', 'those of a frozen one frozen');
SELECT is(pg_temp.claims(pg_temp.user(6)::text) ->> 'account_status', 'frozen', 'those of its member too');
SELECT is(pg_temp.claims(pg_temp.user(5)::text) ->> 'account_status', 'active', 'a member of an active customer and a frozen one is active');
SELECT is(pg_temp.claims(pg_temp.user(8)::text), pg_temp.unchanged(pg_temp.user(8)::text), 'a user without a customer gets no status');
SELECT is(pg_temp.claims('nobody'), pg_temp.unchanged('nobody'), 'nor does an id that is none');
SELECT is(pg_temp.claims(NULL), pg_temp.unchanged(NULL), 'nor a missing one');
SELECT is(reclaim.custom_access_token_hook('{}'), '{}', 'an event without anything comes back as it was');
SELECT is(reclaim.custom_access_token_hook('[1]'), '[1]', 'so does one that is no object');
SELECT is(reclaim.custom_access_token_hook(NULL), NULL, 'and null');
SELECT is(reclaim.custom_access_token_hook('{"user_id": "20000000-0000-4000-8000-000000000001", "claims": 5}'),
  '{"user_id": "20000000-0000-4000-8000-000000000001", "claims": 5}', 'claims that are no object stay');
SELECT throws_ok('SELECT reclaim.account_status_of(NULL)', '42501', NULL, 'the grant gives no other function');
SELECT throws_ok('SELECT FROM reclaim.customer_customers', '42501', NULL, 'and no table');
RESET ROLE;
SELECT ok((SELECT 'lock_timeout=250ms' = ANY (proconfig) FROM pg_proc WHERE oid = 'reclaim.custom_access_token_hook(jsonb)'::regprocedure),
  'a sign-in does not wait for a lock');

-- A schema in which something is missing does not stop sign-ins.
SAVEPOINT broken;
ALTER TABLE reclaim.customer_members RENAME TO members_elsewhere;
SELECT is(pg_temp.claims(pg_temp.user(1)::text), pg_temp.unchanged(pg_temp.user(1)::text), 'after an error the claims stay');
ROLLBACK TO broken;

-- Where users are customers.
SAVEPOINT users;
UPDATE reclaim.installation SET customers = 'users', cooldown = interval '30 days';
SELECT is(pg_temp.claims(pg_temp.user(8)::text) ->> 'account_status', 'active', 'where users are customers, one without a row is active');
SELECT is(pg_temp.claims(pg_temp.user(2)::text) ->> 'account_status', 'frozen', 'a frozen one is frozen');
SELECT is(reclaim.account_status_of(pg_temp.user(99)), 'deleted', 'one who is not there is deleted');
SELECT is(reclaim.cooldown_begin(ARRAY['a', 'b'], ARRAY[pg_temp.user(6), NULL]), 1, 'a member keeps the login, and its address does not cool down');
ROLLBACK TO users;

-- Policies.
CREATE TABLE public.tap_notes (customer_id uuid, note text);
INSERT INTO public.tap_notes SELECT pg_temp.customer(n), 'note ' || n FROM generate_series(1, 3) AS n;
ALTER TABLE public.tap_notes ENABLE ROW LEVEL SECURITY;
CREATE POLICY active ON public.tap_notes USING ((SELECT reclaim.account_is_active()) AND reclaim.customer_is_active(customer_id));
CREATE ROLE tap_authenticated;
GRANT USAGE ON SCHEMA reclaim, tap TO tap_authenticated;
GRANT SELECT ON public.tap_notes TO tap_authenticated;
GRANT EXECUTE ON FUNCTION reclaim.account_status(), reclaim.account_is_active(), reclaim.customer_is_active(uuid) TO tap_authenticated;
CREATE FUNCTION pg_temp.request_of(p_user uuid) RETURNS text LANGUAGE sql AS
  $$ SELECT set_config('request.jwt.claims', jsonb_build_object('sub', p_user, 'role', 'authenticated')::text, true) $$;
CREATE FUNCTION pg_temp.seen() RETURNS text LANGUAGE sql AS
  $$ SELECT coalesce(string_agg(note, ',' ORDER BY note), '') FROM public.tap_notes $$;

SET LOCAL ROLE tap_authenticated;
SELECT is(reclaim.account_status(), NULL, 'outside of a request there is no status');
SELECT is(reclaim.account_is_active(), false, 'and nobody is active');
SELECT is(pg_temp.request_of(pg_temp.user(1)) IS NULL, false);
SELECT is(reclaim.account_status(), 'active', 'an owner''s request');
SELECT is(pg_temp.seen(), 'note 1,note 3', 'a policy shows rows of active customers');
SELECT is(pg_temp.request_of(pg_temp.user(2)) IS NULL, false);
SELECT is(reclaim.account_status() || reclaim.account_is_active(), 'frozenfalse', 'a frozen owner''s request');
SELECT is(pg_temp.seen(), '', 'the same policy shows a frozen user nothing');
SELECT is(pg_temp.request_of(pg_temp.user(8)) IS NULL, false);
SELECT is(pg_temp.seen(), '', 'nor one without a customer');
SELECT is(set_config('request.jwt.claims', '{"role": "anon"}', true), '{"role": "anon"}');
SELECT is(reclaim.account_is_active(), false, 'a token without a user is not active');
SELECT is(set_config('request.jwt.claim.sub', '20000000-0000-4000-8000-000000000001', true), '20000000-0000-4000-8000-000000000001');
SELECT is(reclaim.account_status(), 'active', 'the setting of older PostgREST is read, too');
RESET ROLE;

SELECT is_empty(format('SELECT FROM reclaim.cooldown_addresses(%L, NULL)', ARRAY[pg_temp.customer(1)]), 'without the setting no address cools down');
UPDATE reclaim.installation SET cooldown = '60 seconds';
-- Which addresses cool down: C hashes them between these two functions, and they are all that SQL has.
SELECT set_eq(format('SELECT address, user_id FROM reclaim.cooldown_addresses(%L, NULL)', ARRAY[pg_temp.customer(1), pg_temp.customer(3)]),
  $$VALUES ('user1@example.com', pg_temp.user(1)), ('user5@example.com', pg_temp.user(5)), ('user3@example.com', pg_temp.user(3)),
    ('user7@example.com', pg_temp.user(7)), ('Office@Example.com', NULL)$$, 'those of owners, members, and of the customer itself');
SELECT set_eq(format('SELECT address FROM reclaim.cooldown_addresses(%L, %L)', '{}', ARRAY[pg_temp.user(9)]), ARRAY['user9@example.com'],
  'and of the owner of a row that is gone');
SELECT reclaim.delete_customers(ARRAY[pg_temp.customer(1), pg_temp.customer(4)], ARRAY[NULL, NULL], 'delete', 'operator', NULL, NULL);
SELECT is(reclaim.cooldown_begin(ARRAY['one', 'one', 'four', 'five', 'office'], ARRAY[pg_temp.user(1), pg_temp.user(1), pg_temp.user(4),
  pg_temp.user(5), NULL]), 2, 'only logins that are gone cool down, each once');
SELECT set_eq('SELECT address_hash FROM reclaim.address_cooldowns', ARRAY['one', 'office'],
  'not the owner of another customer, nor the member of one');
SELECT ok((SELECT bool_and(ends_at - reclaim.now() BETWEEN interval '50 seconds' AND interval '60 seconds') FROM reclaim.address_cooldowns),
  'for as long as the setting says');
UPDATE reclaim.installation SET cooldown = '1 second';
SELECT is(reclaim.cooldown_begin(ARRAY['one'], ARRAY[NULL]::uuid[]), 1);
SELECT ok((SELECT ends_at > reclaim.now() + interval '50 seconds' FROM reclaim.address_cooldowns WHERE address_hash = 'one'),
  'a shorter one does not end a longer one');
UPDATE reclaim.installation SET cooldown = NULL;
SELECT is(reclaim.cooldown_begin(ARRAY['nine'], ARRAY[NULL]::uuid[]), 0, 'nothing is written once it is off');
SELECT is(reclaim.account_status_of(pg_temp.user(4)), 'active', 'a user with a deleted customer and an active one is active');
UPDATE reclaim.customer_customers SET status = 'deleted' WHERE id = pg_temp.customer(3);
SELECT is(reclaim.account_status_of(pg_temp.user(3)), 'deleted', 'one whose customers are all deleted is deleted');

SELECT * FROM finish();
ROLLBACK;
