-- Users that are customers without a row (RECLAIM_CUSTOMERS=users): who is one, who is none, and what makes the row.
BEGIN;
SELECT plan(32);

CREATE FUNCTION pg_temp.user(n integer) RETURNS uuid LANGUAGE sql IMMUTABLE AS
  $$ SELECT ('20000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
CREATE FUNCTION pg_temp.other(n integer) RETURNS uuid LANGUAGE sql IMMUTABLE AS
  $$ SELECT ('10000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
INSERT INTO auth.users (id, email, email_confirmed_at, created_at)
  SELECT pg_temp.user(n), 'user' || n || '@example.com', now(), '2025-10-01' FROM generate_series(1, 9) AS n;
UPDATE auth.users SET deleted_at = now() WHERE id = pg_temp.user(9);

SELECT is((SELECT customers FROM reclaim.installation), 'table', 'unless a server says otherwise, customers are those of the table');
SELECT is_empty(format('SELECT * FROM reclaim.customer_row(%L)', pg_temp.user(1)), 'there, a user is no customer');
SELECT is(reclaim.customer_is_active(pg_temp.user(1)), false);
SELECT is(reclaim.customer_make(pg_temp.user(1)), false, 'and gets no row');
SELECT is(reclaim.users_watch(), NULL, 'nothing is put on auth.users');
SELECT is_empty($$SELECT FROM pg_trigger WHERE tgrelid = 'auth.users'::regclass AND NOT tgisinternal$$);
SELECT throws_ok($$UPDATE reclaim.installation SET customers = 'all'$$, '23514', NULL, 'table or users');

UPDATE reclaim.installation SET customers = 'users';
SELECT is((SELECT row(c.status, c.owner_user_id, c.email, c.tm_create)::text FROM reclaim.customer_row(pg_temp.user(1)) c),
  row('active', pg_temp.user(1), 'user1@example.com', '2025-10-01'::timestamptz)::text, 'now a user is one');
SELECT is(reclaim.customer_is_active(pg_temp.user(1)), true);
SELECT is(reclaim.customer_is_active(pg_temp.user(9)), false, 'who is marked as deleted is none');
SELECT is(reclaim.customer_is_active(gen_random_uuid()), false, 'nor is a random id');
SELECT is(reclaim.customer_is_active(NULL), false);
SELECT is((SELECT count(*) FROM reclaim.customer_customers), 0::bigint, 'no row was made');

-- The row.
SELECT is(reclaim.customer_make(pg_temp.user(1)), true);
SELECT is(reclaim.customer_make(pg_temp.user(1)), false, 'once');
SELECT is((SELECT row(owner_user_id, version)::text FROM reclaim.customer_customers WHERE id = pg_temp.user(1)), row(pg_temp.user(1), 1)::text);
SELECT is(reclaim.customer_make(pg_temp.user(9)), false, 'none for who is none');
INSERT INTO reclaim.customer_customers (id) VALUES (pg_temp.user(2));
SELECT is((SELECT owner_user_id FROM reclaim.customer_customers WHERE id = pg_temp.user(2)), pg_temp.user(2), 'a row of a user''s id is the user''s');
INSERT INTO reclaim.customer_members (customer_id, user_id) VALUES (pg_temp.user(3), pg_temp.user(4));
SELECT is((SELECT count(*) FROM reclaim.customer_customers WHERE id = pg_temp.user(3)), 1::bigint, 'a member makes it, whoever writes it');

-- Rows of other ids come first.
INSERT INTO reclaim.customer_customers (id, owner_user_id) VALUES (pg_temp.other(1), pg_temp.user(5));
SELECT is_empty(format('SELECT * FROM reclaim.customer_row(%L)', pg_temp.user(5)), 'who owns a row of another id is not implied');
SELECT is(reclaim.customer_is_active(pg_temp.user(5)), true, 'but as active as that row');
UPDATE reclaim.customer_customers SET status = 'frozen' WHERE id = pg_temp.other(1);
SELECT is(reclaim.customer_is_active(pg_temp.user(5)), false);
SELECT results_eq(format('SELECT id FROM reclaim.customers_of_user(%L, NULL) ORDER BY id', pg_temp.user(4)),
  ARRAY[pg_temp.user(3), pg_temp.user(4)], 'a member is a customer of its own, too');

-- A user who leaves.
SELECT is(reclaim.users_watched(), false);
SELECT is(reclaim.users_watch(), NULL);
SELECT is(reclaim.users_watched(), true, 'the triggers are there');
DELETE FROM reclaim.gate_ended;
DELETE FROM auth.users WHERE id IN (pg_temp.user(6), pg_temp.user(9));
SELECT results_eq('SELECT id FROM reclaim.gate_ended', ARRAY[pg_temp.user(6)], 'the gates are told; of one who had been marked they were before');
SELECT is((SELECT payload -> 'user_ids' FROM reclaim.work_items WHERE kind = 'user_removed'), jsonb_build_array(pg_temp.user(6)));
SELECT is(reclaim.users_leave(ARRAY[pg_temp.user(6), pg_temp.user(7)], 'somebody'), 1, 'the customer is deleted; who is there is left alone');
SELECT is((SELECT row(action, actor, actor_role)::text FROM reclaim.customer_log WHERE customer_id = pg_temp.user(6)), '(delete,sql,somebody)');
INSERT INTO auth.users (id, email) VALUES (pg_temp.user(6), 'again@example.com');
SELECT is(reclaim.customer_is_active(pg_temp.user(6)), false, 'an id does not come back');
UPDATE reclaim.customer_customers SET hold_at = now(), hold_reason = 'a lawsuit' WHERE id = pg_temp.user(1);
SELECT throws_ok(format('DELETE FROM auth.users WHERE id = %L', pg_temp.user(1)), '55000', NULL, 'a legal hold keeps the user');

SELECT * FROM finish();
ROLLBACK;
