-- Members of customers: who may become one, what the gates hear, and whose login goes with a customer.
BEGIN;
SELECT plan(39);

CREATE FUNCTION pg_temp.user(n integer) RETURNS uuid LANGUAGE sql IMMUTABLE AS
  $$ SELECT ('20000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
CREATE FUNCTION pg_temp.customer(n integer) RETURNS uuid LANGUAGE sql IMMUTABLE AS
  $$ SELECT ('10000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
INSERT INTO auth.users (id, email, encrypted_password, email_confirmed_at)
  SELECT pg_temp.user(n), 'user' || n || '@example.com', '', now() FROM generate_series(1, 9) AS n;
INSERT INTO reclaim.customer_customers (id, name, email, owner_user_id) VALUES
  (pg_temp.customer(1), 'Alpha', 'alpha@example.com', pg_temp.user(1)),
  (pg_temp.customer(2), 'beta 100%', 'BETA@example.com', pg_temp.user(2)),
  (pg_temp.customer(3), repeat('long ', 2000), 'c_d@example.com', pg_temp.user(1));
SELECT pass('a user owns two customers that are not deleted');
INSERT INTO reclaim.customer_customers (id, status) VALUES (pg_temp.customer(4), 'deleted');

-- Who may become a member.
INSERT INTO reclaim.customer_members (customer_id, user_id) VALUES (pg_temp.customer(1), pg_temp.user(3));
SELECT is((SELECT role FROM reclaim.customer_members WHERE user_id = pg_temp.user(3)), 'member', 'the role is member unless one is given');
SELECT throws_ok(format('INSERT INTO reclaim.customer_members VALUES (%L, %L)', gen_random_uuid(), pg_temp.user(3)),
  '23503', NULL, 'a customer that is missing gets no member');
SELECT throws_ok(format('INSERT INTO reclaim.customer_members VALUES (%L, %L)', pg_temp.customer(4), pg_temp.user(3)),
  '23503', NULL, 'nor does a deleted one');
SELECT throws_ok(format('UPDATE reclaim.customer_members SET customer_id = %L', pg_temp.customer(4)),
  '23503', NULL, 'nor by an update');
SELECT throws_ok(format('UPDATE reclaim.customer_members SET role = %L', 'owner'), '23514', NULL, 'the owner is no member''s role');
SELECT throws_ok($$UPDATE reclaim.customer_members SET role = 'No Role'$$, '23514', NULL, 'a role is a lower-case name');

-- What the gates hear, also from a role that may write members and nothing else.
CREATE FUNCTION pg_temp.ended() RETURNS text LANGUAGE sql AS
  $$ SELECT coalesce(string_agg("right"(id::text, 1), ',' ORDER BY id), '') FROM reclaim.gate_ended WHERE kind = 'user' $$;
SELECT is(pg_temp.ended(), '3', 'a new member is announced');
DELETE FROM reclaim.gate_ended;
UPDATE reclaim.customer_members SET role = 'billing' WHERE user_id = pg_temp.user(3);
SELECT is(pg_temp.ended(), '', 'another role changes nothing at the gates');
UPDATE reclaim.customer_members SET user_id = pg_temp.user(4) WHERE user_id = pg_temp.user(3);
SELECT is(pg_temp.ended(), '3,4', 'a membership that goes to another user is announced for both');
DELETE FROM reclaim.gate_ended;
CREATE ROLE reclaim_test_members;
GRANT USAGE ON SCHEMA reclaim, tap TO reclaim_test_members;
GRANT SELECT, INSERT, DELETE ON reclaim.customer_members TO reclaim_test_members;
SET LOCAL ROLE reclaim_test_members;
INSERT INTO reclaim.customer_members (customer_id, user_id)
  SELECT '10000000-0000-4000-8000-000000000002', ('20000000-0000-4000-8000-00000000000' || n)::uuid FROM generate_series(5, 7) AS n;
DELETE FROM reclaim.customer_members WHERE user_id = '20000000-0000-4000-8000-000000000007';
SELECT throws_ok('DELETE FROM reclaim.gate_ended', '42501', NULL, 'such a role has no right to the table of the gates');
RESET ROLE;
SELECT is(pg_temp.ended(), '5,6,7,7', 'whoever writes members, the gates hear of it');

-- The functions behind the API.
SELECT is(reclaim.member_add(pg_temp.customer(1), pg_temp.user(3), NULL), 'done');
SELECT is(reclaim.member_add(pg_temp.customer(1), pg_temp.user(3), NULL), 'unchanged', 'again');
SELECT is(reclaim.member_add(pg_temp.customer(1), pg_temp.user(3), 'billing'), 'unchanged', 'with a role');
SELECT is(reclaim.member_object(pg_temp.customer(1), pg_temp.user(3)) ->> 'role', 'billing', 'which it then has');
SELECT is(reclaim.member_add(gen_random_uuid(), pg_temp.user(3), NULL), 'unknown');
SELECT is(reclaim.member_add(pg_temp.customer(4), pg_temp.user(3), NULL), 'deleted');
SELECT is(reclaim.member_add(pg_temp.customer(1), gen_random_uuid(), NULL), 'user_unknown');
SELECT is(reclaim.members_page(gen_random_uuid(), NULL, 10)::text, NULL, 'no page of a customer that is not there');
SELECT is(reclaim.members_page(pg_temp.customer(3), NULL, 10)::text, '{"items" : [], "next" : null}');
SELECT is(reclaim.members_page(pg_temp.customer(1), NULL, 1) ->> 'next', pg_temp.user(3)::text, 'a page ends where the next begins');
SELECT is(json_array_length(reclaim.members_page(pg_temp.customer(1), pg_temp.user(3), 1) -> 'items'), 1);
SELECT is(reclaim.members_page(pg_temp.customer(1), pg_temp.user(3), 1) ->> 'next', NULL, 'the last has none');
SELECT is(reclaim.member_remove(pg_temp.customer(1), pg_temp.user(4)) ->> 'email', 'user4@example.com');
SELECT is(reclaim.member_remove(pg_temp.customer(1), pg_temp.user(4))::text, NULL, 'removed once');

-- Customers are found by their id or by how their name or address begins.
CREATE FUNCTION pg_temp.found(p_text text, p_held boolean DEFAULT false, p_status text DEFAULT NULL) RETURNS text LANGUAGE sql AS
  $$ SELECT coalesce(string_agg("right"(found::text, 1), ',' ORDER BY found), '') FROM reclaim.customers_find(p_status, p_held, p_text, NULL, 100) AS found $$;
UPDATE reclaim.customer_customers SET hold_at = now(), hold_reason = 'case' WHERE id = pg_temp.customer(2);
SELECT is(ARRAY[pg_temp.found('ALP'), pg_temp.found('beta@'), pg_temp.found('beta 100%'), pg_temp.found('long long'),
    pg_temp.found(pg_temp.customer(3)::text), pg_temp.found(NULL, true), pg_temp.found(NULL, false, 'deleted')],
  ARRAY['1', '2', '2', '3', '3', '2', '4'], 'by name, address, id, hold and status');
SELECT is(ARRAY[pg_temp.found('%'), pg_temp.found('_'), pg_temp.found('\'), pg_temp.found('cxd'), pg_temp.found('pha')],
  ARRAY['', '', '', '', ''], 'a text is the beginning, not a pattern');
SELECT is(pg_temp.found('beta', true, 'frozen'), '', 'all that is asked for must hold');

-- Whose login goes with a customer: 1 owns two, 3 belongs to both, 5 and 6 to one; 6 owns another, 8 is of a third.
SELECT is(reclaim.member_add(pg_temp.customer(2), pg_temp.user(3), NULL), 'done');
INSERT INTO reclaim.customer_customers (id, owner_user_id) VALUES (pg_temp.customer(5), pg_temp.user(6));
INSERT INTO reclaim.customer_members (customer_id, user_id) VALUES (pg_temp.customer(3), pg_temp.user(8));
UPDATE reclaim.customer_customers SET hold_at = NULL, hold_reason = NULL WHERE id = pg_temp.customer(2);
SELECT is(reclaim.users_of_customers(ARRAY[pg_temp.customer(2), pg_temp.customer(1)]),
  ARRAY[pg_temp.user(1), pg_temp.user(2), pg_temp.user(3), pg_temp.user(5), pg_temp.user(6)], 'owners and members, each once');
CREATE FUNCTION pg_temp.logins() RETURNS text LANGUAGE sql AS
  $$ SELECT string_agg("right"(id::text, 1), ',' ORDER BY id) FROM auth.users WHERE id BETWEEN pg_temp.user(1) AND pg_temp.user(9) $$;
DELETE FROM reclaim.gate_ended;
SELECT is(reclaim.delete_customers(ARRAY[pg_temp.customer(2)], ARRAY[NULL], 'delete', 'operator', NULL, NULL), 1);
SELECT is(pg_temp.logins(), '1,3,4,6,7,8,9', 'the owner''s login and those of members who belong to no other customer go');
SELECT is((SELECT count(*) FROM reclaim.customer_members WHERE customer_id = pg_temp.customer(2)), 0::bigint, 'no membership is left');
SELECT ok(pg_temp.ended() LIKE '%3%' AND pg_temp.ended() LIKE '%6%', 'the gates hear of those who stay');
SELECT is(reclaim.delete_customers(ARRAY[pg_temp.customer(1)], ARRAY[NULL], 'delete', 'operator', NULL, NULL), 1);
SELECT is(pg_temp.logins(), '1,4,6,7,8,9', 'with the last of its customers a member''s login goes; an owner of another stays');
SELECT is((SELECT array_agg(user_id) FROM reclaim.customer_members), ARRAY[pg_temp.user(8)], 'members of others stay');
DELETE FROM reclaim.gate_ended;
TRUNCATE reclaim.customer_members;
SELECT is(pg_temp.ended(), '8', 'a TRUNCATE is announced, too');

SELECT * FROM finish();
ROLLBACK;
