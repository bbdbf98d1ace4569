-- A change of a customer's state is complete, whoever writes it in plain SQL; and what other programs cannot write.
BEGIN;
SELECT plan(60);

-- What may become of a customer, written out as the requirement has it.
SELECT results_eq('SELECT status, change, outcome, next FROM reclaim.customer_transitions ORDER BY status, change',
  $$VALUES ('active', 'delete', 'changes', 'deleted'), ('active', 'freeze', 'changes', 'frozen'), ('active', 'recover', 'refused', 'active'),
    ('deleted', 'delete', 'unchanged', 'deleted'), ('deleted', 'freeze', 'refused', 'deleted'), ('deleted', 'recover', 'refused', 'deleted'),
    ('frozen', 'delete', 'changes', 'deleted'), ('frozen', 'freeze', 'unchanged', 'frozen'), ('frozen', 'recover', 'changes', 'active')$$,
  'each change does in each state what is promised');

UPDATE reclaim.installation SET mails = true, grace = '30 days';
INSERT INTO auth.users (id, email) VALUES ('20000000-0000-4000-8000-000000000001', 'one@example.com');
INSERT INTO reclaim.customer_customers (id, name, email, owner_user_id)
  VALUES ('10000000-0000-4000-8000-000000000001', 'One', 'one@example.com', '20000000-0000-4000-8000-000000000001');
INSERT INTO reclaim.billing_accounts (id, customer_id) VALUES ('30000000-0000-4000-8000-000000000001', '10000000-0000-4000-8000-000000000001');
INSERT INTO reclaim.billing_subscriptions (billing_account_id, amount_micros, period_seconds, next_charge_at)
  VALUES ('30000000-0000-4000-8000-000000000001', 1, 3600, now() + interval '1 hour');
INSERT INTO reclaim.access_keys (customer_id, key_hash) VALUES ('10000000-0000-4000-8000-000000000001', 'k1');
CREATE FUNCTION pg_temp.one() RETURNS reclaim.customer_customers LANGUAGE sql AS
  $$ SELECT c FROM reclaim.customer_customers c WHERE id = '10000000-0000-4000-8000-000000000001' $$;
CREATE FUNCTION pg_temp.work(p_kind text) RETURNS bigint LANGUAGE sql AS
  $$ SELECT count(*) FROM reclaim.work_items WHERE kind = p_kind AND payload ->> 'customer_id' = '10000000-0000-4000-8000-000000000001' $$;

-- A freeze.
UPDATE reclaim.customer_customers SET status = 'frozen' WHERE name = 'One';
SELECT is((pg_temp.one()).deletion_effective_at, (pg_temp.one()).tm_deletion_scheduled + interval '30 days', 'the promised date is stored');
SELECT is((pg_temp.one()).frozen_by, 'sql', 'frozen by another program');
SELECT is((pg_temp.one()).frozen_billing_at, (pg_temp.one()).tm_deletion_scheduled, 'billing has it in the same instant');
SELECT is((SELECT status || hold_reasons::text FROM reclaim.billing_accounts), 'frozen{account_frozen}', 'the account is held');
SELECT is((SELECT count(*) FROM reclaim.billing_freezes WHERE thawed_at IS NULL), 1::bigint, 'since when is recorded');
SELECT is((SELECT status FROM reclaim.billing_subscriptions), 'paused', 'subscriptions pause');
SELECT results_eq('SELECT type, sequence, payload ->> ''status'' FROM reclaim.event_outbox', $$VALUES ('customer_frozen', 2::bigint, 'frozen')$$, 'one event');
SELECT results_eq('SELECT action, actor, actor_role, outcome FROM reclaim.customer_log', format('VALUES (''freeze'', ''sql'', %L, ''done'')', session_user), 'one audit row, with the role');
SELECT is(pg_temp.work('mail'), 1::bigint, 'a mail');
SELECT is(pg_temp.work('hangup'), 1::bigint, 'calls are to be ended');
SELECT results_eq('SELECT status, version FROM reclaim.customer_told', $$VALUES ('frozen', 2::bigint)$$, 'the layers know it');
SELECT is((SELECT count(*) FROM reclaim.customer_pending), 0::bigint, 'no note is left');
SELECT is((SELECT count(*) FROM reclaim.customer_disagreements(10)), 0::bigint, 'the layers agree');

-- Freezing again, and what an upsert writes.
UPDATE reclaim.customer_customers SET status = 'frozen', version = 1, tm_deletion_scheduled = NULL WHERE name = 'One';
SELECT is((pg_temp.one()).version, 2::bigint, 'the version is never taken from the writer');
SELECT isnt((pg_temp.one()).tm_deletion_scheduled, NULL, 'nor is the schedule emptied');
SELECT is((SELECT count(*) FROM reclaim.event_outbox), 1::bigint, 'frozen again is no change');

-- The grace period concerns later freezes only.
UPDATE reclaim.installation SET grace = '1 day';
UPDATE reclaim.customer_customers SET detail = 'x' WHERE name = 'One';
SELECT is((pg_temp.one()).deletion_effective_at, (pg_temp.one()).tm_deletion_scheduled + interval '30 days', 'a shorter grace moves no date');

-- A recovery.
UPDATE reclaim.customer_customers SET status = 'active' WHERE name = 'One';
SELECT is(((pg_temp.one()).frozen_by, (pg_temp.one()).deletion_effective_at, (pg_temp.one()).freeze_reason)::text, '(,,)', 'nothing of the freeze is left');
SELECT is((SELECT status || hold_reasons::text FROM reclaim.billing_accounts), 'active{}', 'the account is free');
SELECT is((SELECT status FROM reclaim.billing_subscriptions), 'active', 'subscriptions go on');
SELECT is((SELECT max(sequence) FROM reclaim.event_outbox WHERE type = 'customer_recovered'), (pg_temp.one()).version, 'with its event');

-- A legal hold.
UPDATE reclaim.customer_customers SET status = 'frozen' WHERE name = 'One';
SELECT is((pg_temp.one()).deletion_effective_at, (pg_temp.one()).tm_deletion_scheduled + interval '1 day', 'a later freeze has the new grace');
UPDATE reclaim.customer_customers SET hold_at = now(), hold_reason = 'court' WHERE name = 'One';
SELECT throws_ok($$UPDATE reclaim.customer_customers SET status = 'deleted' WHERE name = 'One'$$, '55000', NULL, 'what is held cannot be deleted');
SELECT throws_ok($$UPDATE reclaim.customer_customers SET tm_delete = now() WHERE name = 'One'$$, '55000', NULL, 'not by its time');
SELECT throws_ok($$DELETE FROM reclaim.customer_customers WHERE name = 'One'$$, '55000', NULL, 'nor as a row');
UPDATE reclaim.customer_customers SET deletion_effective_at = now() - interval '1 day' WHERE name = 'One';
SELECT ok((reclaim.customer_object(pg_temp.one()) ->> 'deletion_effective_at')::timestamptz > now(), 'while held no date in the past is shown');
UPDATE reclaim.customer_customers SET hold_at = NULL, hold_reason = NULL WHERE name = 'One';
SELECT ok((pg_temp.one()).deletion_effective_at > now() + interval '6 days 23 hours', 'a hold that ends after the date moves it by a week');
SELECT is((SELECT count(*) FROM reclaim.work_items WHERE payload ->> 'template' = 'customer-moved'), 1::bigint, 'with a mail');
SELECT throws_ok('TRUNCATE reclaim.customer_customers', '55000', NULL, 'the table cannot be emptied');
SELECT throws_ok($$UPDATE reclaim.customer_customers SET id = gen_random_uuid() WHERE name = 'One'$$, '55000', NULL, 'an id stays');

-- Other roles.
CREATE ROLE reclaim_test_team;
GRANT USAGE ON SCHEMA reclaim TO reclaim_test_team;
GRANT SELECT, INSERT, UPDATE, DELETE ON reclaim.customer_customers TO reclaim_test_team;
SET SESSION AUTHORIZATION reclaim_test_team;
SET reclaim.actor = 'admin';
SET reclaim.clears = 'true';
UPDATE reclaim.customer_customers SET frozen_by = 'admin', freeze_reason = 'x', deletion_effective_at = now(), hold_at = now(), hold_reason = 'x',
  version = 900, frozen_calls_at = now(), tm_deletion_scheduled = now() - interval '1 year' WHERE name = 'One';
RESET SESSION AUTHORIZATION;
SELECT is((pg_temp.one()).frozen_by, 'sql', 'another role does not write frozen_by');
SELECT is((pg_temp.one()).freeze_reason, NULL, 'nor the reason');
SELECT ok((pg_temp.one()).deletion_effective_at > now() + interval '6 days', 'nor the date');
SELECT is((pg_temp.one()).hold_at, NULL, 'nor a hold');
SELECT ok((pg_temp.one()).version < 900, 'nor the version');
SELECT is((pg_temp.one()).frozen_calls_at, NULL, 'nor what a layer notes');
SET SESSION AUTHORIZATION reclaim_test_team;
UPDATE reclaim.customer_customers SET status = 'active' WHERE name = 'One';
UPDATE reclaim.customer_customers SET status = 'frozen', tm_deletion_scheduled = now() - interval '1 year' WHERE name = 'One';
RESET SESSION AUTHORIZATION;
SELECT is((SELECT actor || ' ' || actor_role FROM reclaim.customer_log ORDER BY id DESC LIMIT 1), 'sql reclaim_test_team', 'the actor is the role, whatever it claims');
SELECT ok((pg_temp.one()).deletion_effective_at > now() + interval '23 hours', 'a schedule in the past makes nothing due at once');

-- A deletion by its time.
SET SESSION AUTHORIZATION reclaim_test_team;
UPDATE reclaim.customer_customers SET tm_delete = now() WHERE name = 'One';
RESET SESSION AUTHORIZATION;
SELECT is(pg_temp.work('anonymise'), 1::bigint, 'personal data is to be cleared, whatever the role claims');
SELECT is((SELECT completed_at FROM reclaim.erasures), NULL, 'the erasure is not complete before');
SELECT is((SELECT payload ->> 'email' FROM reclaim.event_outbox ORDER BY position DESC LIMIT 1), 'deleted_10000000-0000-4000-8000-000000000001@removed.invalid', 'the event is anonymised');
SELECT is((SELECT count(*) FROM reclaim.event_outbox WHERE payload::text LIKE '%one@example.com%'), 0::bigint, 'and so are those before it');
SELECT isnt((SELECT revoked_at FROM reclaim.access_keys), NULL, 'its keys are revoked');
SELECT is((SELECT status FROM reclaim.billing_accounts), 'deleted', 'its account is deleted');
SELECT is((SELECT status FROM reclaim.billing_subscriptions), 'ended', 'its subscriptions end');
SELECT ok((SELECT count(*) > 0 FROM reclaim.cascade_receipts), 'every participant owes its receipt');
SELECT throws_ok($$UPDATE reclaim.customer_customers SET status = 'active' WHERE id = '10000000-0000-4000-8000-000000000001'$$, '55000', NULL, 'deleted stays deleted');
SELECT throws_ok($$UPDATE reclaim.customer_customers SET tm_delete = NULL WHERE id = '10000000-0000-4000-8000-000000000001'$$, '55000', NULL, 'without its time, too');
SELECT is(reclaim.clear_customers('{10000000-0000-4000-8000-000000000001}', '{NULL}', NULL), 1, 'the engine clears');
SELECT is((pg_temp.one()).email, 'deleted_10000000-0000-4000-8000-000000000001@removed.invalid', 'the row');
SELECT is((SELECT count(*) FROM auth.users WHERE email = 'one@example.com'), 0::bigint, 'and the login');

-- A row that is deleted as a row; its id used again.
INSERT INTO reclaim.customer_customers (id, name, email) VALUES ('10000000-0000-4000-8000-000000000002', 'Two', 'two@example.com');
DELETE FROM reclaim.customer_customers WHERE name = 'Two';
SELECT is((SELECT count(*) FROM reclaim.gate_ended WHERE kind = 'customer' AND id = '10000000-0000-4000-8000-000000000002'), 1::bigint, 'every gate is told');
SELECT is((SELECT type FROM reclaim.event_outbox WHERE customer_id = '10000000-0000-4000-8000-000000000002'), 'customer_deleted', 'with its event');
SELECT is(reclaim.erasure_ledger('10000000-0000-4000-8000-000000000002') ->> 'status', 'pending', 'its ledger is there');
INSERT INTO reclaim.customer_customers (id, name) VALUES ('10000000-0000-4000-8000-000000000002', 'Two again');
SELECT ok((SELECT version > 2 FROM reclaim.customer_customers WHERE name = 'Two again'), 'the version of an id goes on');

-- Behind the triggers.
INSERT INTO reclaim.customer_customers (id, name) VALUES ('10000000-0000-4000-8000-000000000003', 'Three');
INSERT INTO reclaim.billing_accounts (id, customer_id) VALUES ('30000000-0000-4000-8000-000000000003', '10000000-0000-4000-8000-000000000003');
SET session_replication_role = replica;
UPDATE reclaim.customer_customers SET status = 'frozen', tm_deletion_scheduled = now() WHERE name = 'Three';
SET session_replication_role = origin;
SELECT is((SELECT count(*) FROM reclaim.customer_disagreements(10) WHERE customer_id = '10000000-0000-4000-8000-000000000003'), 1::bigint, 'is found');
SELECT is((SELECT outcome FROM reclaim.customer_change('10000000-0000-4000-8000-000000000003', 'freeze', 'admin', NULL, NULL, NULL)), 'unchanged', 'a freeze changes nothing');
SELECT is((SELECT hold_reasons::text FROM reclaim.billing_accounts WHERE id = '30000000-0000-4000-8000-000000000003'), '{account_frozen}', 'but completes what was left');
SELECT is((SELECT count(*) FROM reclaim.customer_disagreements(10)), 0::bigint, 'and the layers agree');

SELECT * FROM finish();
ROLLBACK;
