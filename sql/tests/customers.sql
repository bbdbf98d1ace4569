-- Customers, their billing accounts, and what every change of theirs leaves.
BEGIN;
SELECT plan(36);

INSERT INTO reclaim.customer_customers (id, name, email, owner_user_id)
  VALUES ('10000000-0000-4000-8000-000000000001', 'One', 'one@example.com', '20000000-0000-4000-8000-000000000001');
CREATE FUNCTION pg_temp.one() RETURNS reclaim.customer_customers LANGUAGE sql AS
  $$ SELECT c FROM reclaim.customer_customers c WHERE id = '10000000-0000-4000-8000-000000000001' $$;

SELECT is((pg_temp.one()).status, 'active', 'a new customer is active');
SELECT is((pg_temp.one()).version, 1::bigint, 'at its first version');
SELECT is(reclaim.customer_is_active('10000000-0000-4000-8000-000000000001'), true);
SELECT is(reclaim.customer_is_active(gen_random_uuid()), false, 'whoever is unknown is not active');
SELECT is(reclaim.customer_is_active(NULL), false);
SELECT is((SELECT array_agg(k) FROM json_object_keys(reclaim.customer_object(pg_temp.one())) k),
  ARRAY['id', 'name', 'detail', 'email', 'phone_number', 'address', 'webhook_method', 'webhook_uri', 'billing_account_id',
    'status', 'tm_deletion_scheduled', 'tm_create', 'tm_update', 'tm_delete'], 'the object has its members in order');
SELECT matches(reclaim.customer_object(pg_temp.one()) ->> 'tm_create', '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$', 'times are RFC 3339 in UTC');

UPDATE reclaim.customer_customers SET name = 'Still one' WHERE id = (pg_temp.one()).id;
SELECT is((pg_temp.one()).version, 2::bigint, 'every change grows the version');
UPDATE reclaim.customer_customers SET name = 'Still one' WHERE id = (pg_temp.one()).id;
SELECT is((pg_temp.one()).version, 2::bigint, 'nothing changed is no change');

UPDATE reclaim.customer_customers SET status = 'frozen' WHERE id = (pg_temp.one()).id;
SELECT isnt((pg_temp.one()).tm_deletion_scheduled, NULL, 'a frozen customer has its date');
SELECT is((pg_temp.one()).version, 3::bigint);
SELECT is(reclaim.customer_is_active((pg_temp.one()).id), false, 'and is not active');
SELECT is((SELECT array_agg(k) FROM json_object_keys(reclaim.customer_object(pg_temp.one()) -> 'freeze') k),
  ARRAY['api', 'calls', 'billing'], 'the layers are told while it is frozen');
UPDATE reclaim.customer_customers SET frozen_api_at = clock_timestamp() WHERE id = (pg_temp.one()).id;
SELECT is((pg_temp.one()).version, 3::bigint, 'a layer that has the freeze does not change the customer');
UPDATE reclaim.customer_customers SET status = 'active' WHERE id = (pg_temp.one()).id;
SELECT is(((pg_temp.one()).tm_deletion_scheduled, (pg_temp.one()).frozen_api_at)::text, '(,)', 'recovered, nothing of the freeze is left');

UPDATE reclaim.customer_customers SET tm_delete = now() WHERE id = (pg_temp.one()).id;
SELECT is((pg_temp.one()).status, 'deleted', 'whoever sets tm_delete sets the status');
INSERT INTO reclaim.customer_customers (id, status) VALUES ('10000000-0000-4000-8000-000000000002', 'deleted');
SELECT isnt((SELECT tm_delete FROM reclaim.customer_customers WHERE id = '10000000-0000-4000-8000-000000000002'), NULL,
  'whoever sets the status sets tm_delete');
INSERT INTO reclaim.customer_customers (id, status, tm_delete) VALUES ('10000000-0000-4000-8000-000000000003', '', '9999-01-01');
SELECT is((SELECT status || coalesce(tm_delete::text, '') FROM reclaim.customer_customers WHERE id = '10000000-0000-4000-8000-000000000003'),
  'active', 'an empty status and a date that nobody can mean are "not deleted"');
SELECT throws_ok($$UPDATE reclaim.customer_customers SET status = 'gone' WHERE id = '10000000-0000-4000-8000-000000000003'$$,
  '23514', NULL, 'no other status exists');

INSERT INTO reclaim.customer_customers (owner_user_id) VALUES ('20000000-0000-4000-8000-000000000001');
SELECT pass('an owner whose customer is deleted may have another');
INSERT INTO reclaim.customer_customers (owner_user_id) VALUES ('20000000-0000-4000-8000-000000000001');
SELECT pass('and two that live');
INSERT INTO reclaim.customer_customers DEFAULT VALUES;
SELECT pass('every column has a default');

INSERT INTO reclaim.billing_accounts (id, customer_id) VALUES ('30000000-0000-4000-8000-000000000001', '10000000-0000-4000-8000-000000000003');
CREATE FUNCTION pg_temp.bill() RETURNS reclaim.billing_accounts LANGUAGE sql AS
  $$ SELECT b FROM reclaim.billing_accounts b WHERE id = '30000000-0000-4000-8000-000000000001' $$;
SELECT is(((pg_temp.bill()).status, (pg_temp.bill()).balance_micros)::text, '(active,0)', 'a new account is active and empty');
UPDATE reclaim.billing_accounts SET tm_delete = now() WHERE id = (pg_temp.bill()).id;
SELECT is((pg_temp.bill()).status, 'deleted', 'accounts keep status and tm_delete together, too');

-- What events promise.
SELECT throws_ok($$INSERT INTO reclaim.event_outbox (sequence, type, customer_id, payload) VALUES (1, 'customer_lost', gen_random_uuid(), '{}')$$,
  '23514', NULL, 'no other event exists');
INSERT INTO reclaim.event_outbox (sequence, type, customer_id, payload)
  VALUES (1, 'customer_frozen', '10000000-0000-4000-8000-000000000001', '{}');
SELECT throws_ok($$INSERT INTO reclaim.event_outbox (sequence, type, customer_id, payload)
    VALUES (1, 'customer_recovered', '10000000-0000-4000-8000-000000000001', '{}')$$, '23505', NULL, 'a sequence is told once');

-- Row-level security: a policy that asks, and a role that can do nothing else.
CREATE ROLE reclaim_test_reader;
CREATE TABLE public.notes (customer_id uuid, text text);
ALTER TABLE public.notes ENABLE ROW LEVEL SECURITY;
CREATE POLICY active_only ON public.notes USING (reclaim.customer_is_active(customer_id));
INSERT INTO public.notes VALUES ('10000000-0000-4000-8000-000000000001', 'of a deleted customer'),
  ('10000000-0000-4000-8000-000000000003', 'of an active customer');
GRANT SELECT ON public.notes TO reclaim_test_reader;
GRANT USAGE ON SCHEMA reclaim TO reclaim_test_reader;
GRANT USAGE ON SCHEMA tap TO reclaim_test_reader;
SET LOCAL ROLE reclaim_test_reader;
SELECT throws_ok('SELECT * FROM public.notes', '42501', NULL, 'nobody may ask who was not granted it');
RESET ROLE;
GRANT EXECUTE ON FUNCTION reclaim.customer_is_active(uuid) TO reclaim_test_reader;
SET LOCAL ROLE reclaim_test_reader;
SELECT results_eq('SELECT text FROM public.notes', ARRAY['of an active customer'], 'the policy shows what active customers have');
SELECT throws_ok('SELECT * FROM reclaim.customer_customers', '42501', NULL, 'the table itself stays closed');
RESET ROLE;
UPDATE reclaim.customer_customers SET status = 'frozen' WHERE id = '10000000-0000-4000-8000-000000000003';
SET LOCAL ROLE reclaim_test_reader;
SELECT is_empty('SELECT * FROM public.notes', 'frozen, nothing is seen');
RESET ROLE;
UPDATE reclaim.customer_customers SET status = 'active' WHERE id = '10000000-0000-4000-8000-000000000003';
SET LOCAL ROLE reclaim_test_reader;
SELECT isnt_empty('SELECT * FROM public.notes', 'recovered, it is there again');
RESET ROLE;

SELECT is(reclaim.is_sentinel('9999-01-01'), true, 'far away');
SELECT is(reclaim.is_sentinel('2020-01-01'), false, 'long ago is a real deletion');

-- A step that adds a column to these tables says so in reclaim.own_columns, else deletions clear it as one of the team's.
SELECT is(reclaim.own_columns(one), ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass('reclaim.' || one)
    AND attnum > 0 AND NOT attisdropped ORDER BY attnum), one || ' has the columns that Reclaim knows')
  FROM unnest(ARRAY['billing_accounts', 'customer_customers']) AS one;
SELECT is(reclaim.is_own_table('customer_customers'), true, 'a table without columns of others is Reclaim''s own');

SELECT * FROM finish();
ROLLBACK;
