-- Charges, freezes and subscriptions, at moments of the test's choosing.
BEGIN;
SELECT plan(151);

CREATE OR REPLACE FUNCTION reclaim.now() RETURNS timestamptz
LANGUAGE sql STABLE AS $$ SELECT current_setting('test.now')::timestamptz $$;
CREATE FUNCTION pg_temp.at(minute numeric) RETURNS timestamptz LANGUAGE sql IMMUTABLE
AS $$ SELECT '2031-01-01 00:00:00+00'::timestamptz + minute * interval '1 minute' $$;
CREATE FUNCTION pg_temp.go(minute numeric) RETURNS void LANGUAGE plpgsql
AS $$ BEGIN PERFORM set_config('test.now', pg_temp.at(minute)::text, true); END $$;
-- As src/customers/freeze.c does it.
CREATE FUNCTION pg_temp.freeze(id uuid) RETURNS void LANGUAGE sql AS $$
  UPDATE reclaim.customer_customers c SET status = 'frozen', tm_deletion_scheduled = reclaim.now(),
    frozen_billing_at = reclaim.now() WHERE c.id = $1;
  UPDATE reclaim.billing_accounts SET status = 'frozen', hold_reasons = array_append(hold_reasons, 'account_frozen')
    WHERE customer_id = $1 AND status <> 'deleted' AND NOT 'account_frozen' = ANY (hold_reasons) $$;
CREATE FUNCTION pg_temp.recover(id uuid) RETURNS void LANGUAGE sql AS $$
  UPDATE reclaim.customer_customers c SET status = 'active' WHERE c.id = $1;
  UPDATE reclaim.billing_accounts SET
    status = CASE WHEN hold_reasons <@ ARRAY['account_frozen'] THEN 'active' ELSE status END,
    hold_reasons = array_remove(hold_reasons, 'account_frozen')
    WHERE customer_id = $1 AND status <> 'deleted' AND 'account_frozen' = ANY (hold_reasons) $$;
CREATE FUNCTION pg_temp.charge(account uuid, amount bigint, reference text, minute numeric DEFAULT NULL) RETURNS text
LANGUAGE sql AS $$ SELECT outcome FROM reclaim.billing_charge($1, $2, $3, pg_temp.at($4)) $$;
CREATE FUNCTION pg_temp.balance(account uuid) RETURNS bigint LANGUAGE sql
AS $$ SELECT balance_micros FROM reclaim.billing_accounts WHERE id = $1 $$;

CREATE TEMP TABLE c AS SELECT gen_random_uuid() AS one, gen_random_uuid() AS two, gen_random_uuid() AS three;
CREATE TEMP TABLE a AS SELECT gen_random_uuid() AS main, gen_random_uuid() AS held, gen_random_uuid() AS gone,
  gen_random_uuid() AS other, gen_random_uuid() AS late, gen_random_uuid() AS sub;
INSERT INTO reclaim.customer_customers (id) SELECT one FROM c UNION ALL SELECT two FROM c UNION ALL SELECT three FROM c;
INSERT INTO reclaim.billing_accounts (id, customer_id, balance_micros)
  SELECT main, one, 1000 FROM a, c UNION ALL SELECT gone, one, 1000 FROM a, c UNION ALL SELECT other, two, 1000 FROM a, c;
INSERT INTO reclaim.billing_accounts (id, customer_id, balance_micros, status) SELECT held, one, 1000, 'frozen' FROM a, c;

-- Charging
SELECT pg_temp.go(0);
SELECT is(pg_temp.charge(main, 100, 'r1'), 'charged', 'a balance that covers it is charged') FROM a;
SELECT is(pg_temp.balance(main), 900::bigint) FROM a;
SELECT is(pg_temp.charge(main, 100, 'r1'), 'again', 'a reference is charged once') FROM a;
SELECT is(pg_temp.charge(main, 101, 'r1'), 'differs', 'not with another amount') FROM a;
SELECT is(pg_temp.charge(other, 100, 'r1'), 'differs', 'nor to another account') FROM a;
SELECT is(pg_temp.charge(main, 100, 'r1', 0), 'again', 'the same instant said is the same') FROM a;
SELECT is(pg_temp.charge(main, 100, 'r1', -1), 'differs', 'another instant is not') FROM a;
SELECT is(pg_temp.balance(main) || ' ' || pg_temp.balance(other), '900 1000', 'and nothing was taken for any of them') FROM a;
SELECT is(pg_temp.charge(main, 901, 'r2'), 'too_little', 'no account is overdrawn') FROM a;
SELECT is(pg_temp.charge(main, 9007199254740992, 'r2'), 'too_little', 'nor overflown') FROM a;
SELECT is(pg_temp.charge(main, 900, 'r2'), 'charged', 'a refused reference may be tried again, up to all there is') FROM a;
SELECT is(pg_temp.charge(main, 1, 'r3'), 'too_little') FROM a;
SELECT is(pg_temp.charge(gen_random_uuid(), 1, 'r3'), 'unknown');
SELECT is(pg_temp.charge(other, 1, 'r3', 0.01), 'future', 'what has not occurred yet is not charged') FROM a;
SELECT is(pg_temp.charge(other, 1, 'r3', 0), 'charged', 'what occurs now is') FROM a;
SELECT throws_ok(format('SELECT reclaim.billing_charge(%L, 0, %L, NULL)', other, 'r4'), '23514', NULL, 'nothing is no charge') FROM a;
SELECT throws_ok(format('SELECT reclaim.billing_charge(%L, -1, %L, NULL)', other, 'r4'), '23514', NULL, 'less is none either') FROM a;
SELECT is((SELECT (object->>'reference') || ' ' || (object->>'amount_micros') || ' ' || (object->>'occurred_at') || ' ' ||
  (object->>'balance_after_micros') FROM reclaim.billing_charge(main, 100, 'r1', NULL)),
  'r1 100 2031-01-01T00:00:00.000000Z 900', 'the charge as it was made') FROM a;

-- Holds
SELECT is(hold_reasons, '{held}', 'a frozen account has a reason, and be it only that') FROM reclaim.billing_accounts, a WHERE id = held;
SELECT is(pg_temp.charge(held, 1, 'h1'), 'held') FROM a;
SELECT is(pg_temp.charge(held, 1, 'h1', -100), 'held', 'whenever it occurred') FROM a;
SELECT is((SELECT count(*) FROM reclaim.billing_freezes), 0::bigint, 'a hold is no freeze');
UPDATE reclaim.billing_accounts SET status = 'active' WHERE id = (SELECT held FROM a);
SELECT is(status || hold_reasons::text, 'active{}', 'who sets the status lifts the holds') FROM reclaim.billing_accounts, a WHERE id = held;
UPDATE reclaim.billing_accounts SET hold_reasons = '{fraud}' WHERE id = (SELECT held FROM a);
SELECT is(status || hold_reasons::text, 'frozen{fraud}', 'who gives a reason freezes') FROM reclaim.billing_accounts, a WHERE id = held;
UPDATE reclaim.billing_accounts SET hold_reasons = '{}' WHERE id = (SELECT held FROM a);
SELECT is(status, 'active', 'who takes the last one off thaws') FROM reclaim.billing_accounts, a WHERE id = held;
UPDATE reclaim.billing_accounts SET status = 'frozen', hold_reasons = '{fraud}' WHERE id = (SELECT held FROM a);
UPDATE reclaim.billing_accounts SET status = 'deleted' WHERE id = (SELECT gone FROM a);
SELECT isnt(tm_delete, NULL, 'deleting sets the time too') FROM reclaim.billing_accounts, a WHERE id = gone;
SELECT is(pg_temp.charge(gone, 1, 'g1', -100), 'deleted') FROM a;

-- A freeze from minute 10 to 20
UPDATE reclaim.billing_accounts SET balance_micros = 1000 WHERE id = (SELECT main FROM a);
SELECT pg_temp.go(10);
SELECT pg_temp.freeze(one) FROM c;
SELECT is((SELECT count(*) FROM reclaim.billing_freezes), 2::bigint, 'accounts that are not deleted freeze');
SELECT is(f.frozen_at, k.tm_deletion_scheduled, 'at the instant that the customer shows')
  FROM reclaim.billing_freezes f, reclaim.customer_customers k, a, c WHERE f.billing_account_id = main AND k.id = one;
SELECT is(tm_deletion_scheduled, pg_temp.at(10), 'which is stamped when the accounts are locked')
  FROM reclaim.customer_customers, c WHERE id = one;
SELECT is(frozen_billing_at, pg_temp.at(10), 'and so is the billing layer’s') FROM reclaim.customer_customers, c WHERE id = one;
SELECT is((SELECT reclaim.billing_account_object(b)->>'frozen_at'), '2031-01-01T00:10:00.000000Z')
  FROM reclaim.billing_accounts b, a WHERE id = main;
SELECT pg_temp.go(12);
SELECT is(pg_temp.charge(main, 1, 'f1'), 'frozen', 'now is inside the freeze') FROM a;
SELECT is(pg_temp.charge(main, 1, 'f1', 10), 'frozen', 'so is its first instant') FROM a;
SELECT is(pg_temp.charge(main, 1, 'f1', 9.99), 'charged', 'what occurred before it is owed') FROM a;
SELECT is(pg_temp.charge(main, 1, 'f1', 9.99), 'again') FROM a;
SELECT is(pg_temp.charge(main, 900, 'r2'), 'again', 'what was charged before stays charged') FROM a;
SELECT is(pg_temp.charge(main, 1000, 'f2', 9), 'too_little') FROM a;
SELECT is(pg_temp.charge(held, 1, 'f2', 9), 'held', 'another hold refuses all') FROM a;
SELECT is(pg_temp.charge(other, 1, 'f2'), 'charged', 'others are not concerned') FROM a;
UPDATE reclaim.billing_accounts SET status = 'active' WHERE id = (SELECT main FROM a);
SELECT is(status || hold_reasons::text, 'frozen{account_frozen}', 'a freeze is not lifted by the account’s status')
  FROM reclaim.billing_accounts, a WHERE id = main;
INSERT INTO reclaim.billing_accounts (id, customer_id, balance_micros) SELECT late, one, 1000 FROM a, c;
SELECT is(status || hold_reasons::text, 'frozen{account_frozen}', 'a frozen customer’s new account is frozen')
  FROM reclaim.billing_accounts, a WHERE id = late;
SELECT is(pg_temp.charge(late, 1, 'f3'), 'frozen') FROM a;
SELECT pg_temp.freeze(one) FROM c;
SELECT is((SELECT count(*) FROM reclaim.billing_freezes, a WHERE billing_account_id = main), 1::bigint, 'a freeze repeated is one');

SELECT pg_temp.go(20);
SELECT pg_temp.recover(one) FROM c;
SELECT is((SELECT array_agg(thawed_at) FROM reclaim.billing_freezes, a WHERE billing_account_id = main), ARRAY[pg_temp.at(20)]);
SELECT is((SELECT count(*) FROM reclaim.billing_freezes WHERE thawed_at IS NULL), 0::bigint, 'recovery ends them all');
SELECT is(status || hold_reasons::text, 'active{}') FROM reclaim.billing_accounts, a WHERE id = main;
SELECT is(status || hold_reasons::text, 'frozen{fraud}', 'a hold of another kind stays') FROM reclaim.billing_accounts, a WHERE id = held;
SELECT is(status, 'deleted', 'a deleted account stays deleted') FROM reclaim.billing_accounts, a WHERE id = gone;
SELECT is(pg_temp.charge(main, 1, 'f4'), 'charged', 'the last instant is outside') FROM a;
SELECT pg_temp.go(21);
SELECT is(pg_temp.charge(main, 1, 'f5', 15), 'was_frozen', 'usage inside a freeze that is over is never charged') FROM a;
SELECT is(pg_temp.charge(main, 1, 'f5', 10), 'was_frozen') FROM a;
SELECT is(pg_temp.charge(main, 1, 'f5', 20), 'charged') FROM a;
SELECT is(pg_temp.charge(main, 1, 'f6', 5), 'charged', 'usage before it still is') FROM a;
SELECT pg_temp.go(30); SELECT pg_temp.freeze(one) FROM c; SELECT pg_temp.go(31);
SELECT is(pg_temp.charge(main, 1, 'f7', 15), 'was_frozen', 'frozen again, the first freeze still counts') FROM a;
SELECT is(pg_temp.charge(main, 1, 'f7', 25), 'charged', 'and what lies between is owed') FROM a;
SELECT pg_temp.go(32); SELECT pg_temp.recover(one) FROM c;
SELECT is(pg_temp.balance(main), 1000 - (SELECT sum(amount_micros)::bigint FROM reclaim.billing_charges WHERE billing_account_id = main
  AND created_at > pg_temp.at(0)), 'the balance is what the charges left') FROM a;
SELECT is((SELECT count(*) FROM reclaim.billing_charges b JOIN reclaim.billing_freezes f USING (billing_account_id)
  WHERE b.occurred_at >= f.frozen_at AND b.occurred_at < f.thawed_at), 0::bigint, 'no charge lies inside a freeze');

-- A customer who is deleted before its accounts are
UPDATE reclaim.customer_customers SET status = 'deleted' WHERE id = (SELECT two FROM c);
SELECT is(pg_temp.charge(other, 1, 'd1'), 'deleted', 'is charged no more') FROM a;

-- Subscriptions: 10 each 30 minutes, from minute 100
INSERT INTO reclaim.billing_accounts (id, customer_id, balance_micros) SELECT sub, three, 1000 FROM a, c;
CREATE FUNCTION pg_temp.subscribe(reference text, amount bigint DEFAULT 10, first numeric DEFAULT 100) RETURNS text
LANGUAGE sql AS $$ SELECT outcome FROM a, reclaim.billing_subscribe(sub, $2, 1800, pg_temp.at($3), $1) $$;
CREATE FUNCTION pg_temp.next(name text) RETURNS numeric LANGUAGE sql
AS $$ SELECT round(extract(epoch FROM next_charge_at - pg_temp.at(0)) / 60, 3) FROM reclaim.billing_subscriptions WHERE reference = $1 $$;
CREATE FUNCTION pg_temp.periods(name text) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(round(extract(epoch FROM occurred_at - pg_temp.at(0)) / 60)::text, ' ' ORDER BY occurred_at)
  FROM reclaim.billing_charges c JOIN reclaim.billing_subscriptions s ON s.id = c.subscription_id WHERE s.reference = $1 $$;
CREATE FUNCTION pg_temp.run() RETURNS text LANGUAGE sql
AS $$ SELECT charged || ' ' || refused || ' ' || failed FROM reclaim.billing_charge_due(100) $$;

SELECT is(pg_temp.subscribe('s1'), 'made');
SELECT is(pg_temp.subscribe('s1'), 'again', 'a subscription is made once a reference');
SELECT is(pg_temp.subscribe('s1', 11), 'differs');
SELECT is(pg_temp.subscribe('s1', 10, 101), 'differs');
SELECT is((SELECT outcome FROM reclaim.billing_subscribe(gen_random_uuid(), 1, 60, NULL, NULL)), 'unknown');
SELECT is((SELECT outcome FROM reclaim.billing_subscribe(gone, 1, 60, NULL, NULL)), 'deleted') FROM a;
SELECT is((SELECT outcome FROM reclaim.billing_subscribe(held, 1, 60, NULL, NULL)), 'held') FROM a;
SELECT is((SELECT outcome FROM reclaim.billing_subscribe(sub, 1, 1, pg_temp.at(0), NULL)), 'past', 'no thousand periods are made up for') FROM a;
SELECT is(pg_temp.run(), '0 0 0', 'before its time nothing is due');
SELECT pg_temp.go(100);
SELECT is(pg_temp.run(), '1 0 0', 'a period is charged when it begins');
SELECT is(pg_temp.run(), '0 0 0', 'and once');
SELECT is(pg_temp.next('s1'), 130.000);
UPDATE reclaim.billing_subscriptions SET next_charge_at = pg_temp.at(100), attempt_at = pg_temp.at(100) WHERE reference = 's1';
SELECT is(pg_temp.run(), '1 0 0', 'even when it is believed to be due again');
SELECT is(pg_temp.balance(sub), 990::bigint, 'it costs nothing the second time') FROM a;
SELECT pg_temp.go(195);
SELECT is(pg_temp.run(), '3 0 0', 'missed periods are made up for, one charge each');
SELECT is(pg_temp.periods('s1'), '100 130 160 190');
SELECT is(pg_temp.next('s1'), 220.000);

SELECT pg_temp.go(200); SELECT pg_temp.freeze(three) FROM c;
SELECT is(status, 'paused', 'a freeze pauses it') FROM reclaim.billing_subscriptions WHERE reference = 's1';
SELECT is((SELECT outcome FROM reclaim.billing_subscribe(sub, 1, 60, NULL, NULL)), 'frozen', 'none is made meanwhile') FROM a;
SELECT pg_temp.go(300);
SELECT is(pg_temp.run(), '0 0 0', 'and nothing is charged');
SELECT pg_temp.recover(three) FROM c;
SELECT is(status, 'active', 'recovery has it go on') FROM reclaim.billing_subscriptions WHERE reference = 's1';
SELECT is(pg_temp.next('s1'), 320.000, 'the next charge moved by the time frozen');
SELECT pg_temp.go(319); SELECT is(pg_temp.run(), '0 0 0');
SELECT pg_temp.go(320); SELECT is(pg_temp.run(), '1 0 0');

-- Due before the freeze and not yet charged: still owed, and once it is, the next one is moved.
SELECT pg_temp.go(355); SELECT pg_temp.freeze(three) FROM c;
SELECT is(pg_temp.run(), '1 0 0', 'what was due before the freeze is charged inside it');
SELECT is(pg_temp.run(), '0 0 0');
SELECT pg_temp.go(455); SELECT pg_temp.recover(three) FROM c;
SELECT is(pg_temp.next('s1'), 480.000, 'the next one moved by the freeze');

-- Too little: it stays due, its tries lie further apart, others go on, and money helps at once.
SELECT pg_temp.go(460);
SELECT is(pg_temp.subscribe('dear', 100000, 460), 'made');
SELECT is(pg_temp.run(), '0 1 0', 'too little is a refusal');
SELECT is(pg_temp.run(), '0 0 0', 'not repeated at once');
SELECT is(trouble, 'too_little') FROM reclaim.billing_subscriptions WHERE reference = 'dear';
SELECT pg_temp.go(480); SELECT is(pg_temp.run(), '1 1 0', 'others of the same account are charged');
SELECT pg_temp.go(485); SELECT pg_temp.freeze(three) FROM c;
SELECT pg_temp.go(585); SELECT pg_temp.recover(three) FROM c;
SELECT pg_temp.go(586); SELECT is(pg_temp.run(), '0 1 0');
UPDATE reclaim.billing_accounts SET balance_micros = 1000000 WHERE id = (SELECT sub FROM a);
SELECT is(pg_temp.run(), '1 0 0', 'a filled balance is tried at once');
SELECT is(pg_temp.periods('dear'), '460');
SELECT is(pg_temp.next('dear'), 590.000, 'what came to lie inside the freeze is moved by it');
SELECT is(reclaim.billing_pause(1), '5 seconds'::interval);
SELECT is(reclaim.billing_pause(100), '1 hour'::interval);

-- An account that cannot be charged keeps nobody waiting.
INSERT INTO reclaim.billing_subscriptions (billing_account_id, amount_micros, period_seconds, next_charge_at, reference)
  SELECT held, 1, 60, pg_temp.at(500), 'of a held account' FROM a;
SELECT pg_temp.go(620); SELECT is(pg_temp.run(), '3 1 0', 'the others are charged');
UPDATE reclaim.billing_accounts SET status = 'active' WHERE id = (SELECT held FROM a);
SELECT is(attempt_at, next_charge_at, 'a lifted hold has it tried at once') FROM reclaim.billing_subscriptions WHERE reference = 'of a held account';

UPDATE reclaim.billing_accounts SET status = 'deleted' WHERE id = (SELECT sub FROM a);
SELECT is((SELECT string_agg(DISTINCT status, ' ') FROM reclaim.billing_subscriptions, a WHERE billing_account_id = sub), 'ended',
  'subscriptions end with their account');
SELECT is((SELECT count(*) FROM reclaim.billing_charges b JOIN reclaim.billing_freezes f USING (billing_account_id)
  WHERE b.occurred_at >= f.frozen_at AND b.occurred_at < f.thawed_at), 0::bigint, 'no charge lies inside a freeze');

-- Usage with a beginning: 600 a minute, around freezes from 1010 to 1020 and from 1030 to 1040
CREATE TEMP TABLE u AS SELECT gen_random_uuid() AS customer, gen_random_uuid() AS account, gen_random_uuid() AS poor;
INSERT INTO reclaim.customer_customers (id) SELECT customer FROM u;
INSERT INTO reclaim.billing_accounts (id, customer_id, balance_micros)
  SELECT account, customer, 1000000 FROM u UNION ALL SELECT poor, customer, 10 FROM u;
CREATE FUNCTION pg_temp.use(amount bigint, reference text, started numeric, ended numeric DEFAULT NULL) RETURNS text
LANGUAGE sql AS $$ SELECT outcome || coalesce(' ' || (object->>'charged_micros'), '')
  FROM u, reclaim.billing_charge(account, $1, $2, pg_temp.at($4), NULL, pg_temp.at($3)) $$;
SELECT pg_temp.go(1010); SELECT pg_temp.freeze(customer) FROM u;
SELECT pg_temp.go(1015);
SELECT is(pg_temp.use(600, 'u1', 1009, 1010), 'charged 600', 'a call that the freeze ended is charged to the freeze');
SELECT is(pg_temp.use(600, 'u2', 1008, 1012), 'charged 300', 'usage that went on is charged up to the freeze');
SELECT is(pg_temp.use(600, 'u3', 1009), 'charged 100', 'and so is what ends now');
SELECT is(pg_temp.use(600, 'u3', 1009), 'again 100', 'a repeat is compared by what was asked');
SELECT is(pg_temp.use(600, 'u2', 1008, 1012), 'again 300');
SELECT is(pg_temp.use(300, 'u2', 1008, 1012), 'differs 300', 'not by what was charged');
SELECT is(pg_temp.use(600, 'u2', NULL, 1012), 'differs 300', 'without its beginning it is another');
SELECT is(pg_temp.use(600, 'u2', 1008.5, 1012), 'differs 300');
SELECT is(pg_temp.use(600, 'u4', 1010, 1012), 'frozen', 'what lies in the freeze is refused');
SELECT is(pg_temp.use(600, 'u4', 1012, 1012), 'frozen', 'so is an instant in it');
SELECT is(pg_temp.use(600, 'u4', 1012, 1011), 'backwards', 'nothing ends before it begins');
SELECT is(pg_temp.use(600, 'u4', 1016), 'backwards', 'nor begins in the future');
SELECT is(pg_temp.use(600, 'u4', 1009, 1016), 'future');
SELECT is(pg_temp.use(9, 'u5', 1009, 1014), 'charged 1', 'parts are rounded down');
SELECT is(pg_temp.use(1, 'u6', 1009, 1014), 'charged 0', 'to nothing, too');
SELECT is(pg_temp.use(1, 'u6', 1009, 1014), 'again 0');
SELECT is((SELECT outcome FROM u, reclaim.billing_charge(poor, 21, 'u7', pg_temp.at(1012), NULL, pg_temp.at(1008))), 'charged',
  'a balance that covers the part is enough');
SELECT is((SELECT outcome FROM u, reclaim.billing_charge(poor, 2, 'u8', pg_temp.at(1012), NULL, pg_temp.at(1008))), 'too_little');
UPDATE reclaim.billing_accounts SET balance_micros = -5 WHERE id = (SELECT poor FROM u);
SELECT is((SELECT outcome FROM u, reclaim.billing_charge(poor, 1, 'u9', pg_temp.at(1012), NULL, pg_temp.at(1008))), 'charged',
  'nothing can be charged to anyone');
SELECT pg_temp.go(1020); SELECT pg_temp.recover(customer) FROM u;
SELECT pg_temp.go(1030); SELECT pg_temp.freeze(customer) FROM u;
SELECT pg_temp.go(1040); SELECT pg_temp.recover(customer) FROM u;
SELECT pg_temp.go(1050);
SELECT is(pg_temp.use(600, 'u10', 1000, 1050), 'charged 360', 'of usage with two freezes in it the rest is charged');
SELECT is(pg_temp.use(600, 'u11', 1015, 1035), 'charged 300', 'also when it began and ended inside them');
SELECT is(pg_temp.use(600, 'u12', 1012, 1018), 'was_frozen');
SELECT is(pg_temp.use(600, 'u12', 1010, 1020), 'was_frozen', 'from the first instant to the last');
SELECT is(pg_temp.use(600, 'u12', 1020, 1030), 'charged 600', 'between them all is charged');
SELECT is(pg_temp.use(9007199254740992, 'u13', 1010, 1030), 'too_little', 'no product overflows');
UPDATE reclaim.billing_accounts SET balance_micros = 9007199254740992 WHERE id = (SELECT account FROM u);
SELECT is(pg_temp.use(9007199254740992, 'u13', -1000000 * 60, 1050), 'charged 9007196252393781', 'nor loses a micro, over a century');
INSERT INTO reclaim.billing_freezes (billing_account_id, frozen_at, thawed_at)
  SELECT account, pg_temp.at(1015), pg_temp.at(1025) FROM u UNION ALL SELECT account, pg_temp.at(1032), pg_temp.at(1033) FROM u;
SELECT is(pg_temp.use(1000, 'u14', 1000, 1050), 'charged 500', 'freezes that overlap count once');
SELECT is(pg_temp.use(1000, 'u15', 1012, 1024), 'was_frozen', 'and together');

-- Calendar periods
CREATE TEMP TABLE m AS SELECT gen_random_uuid() AS customer, gen_random_uuid() AS account;
INSERT INTO reclaim.customer_customers (id) SELECT customer FROM m;
INSERT INTO reclaim.billing_accounts (id, customer_id, balance_micros) SELECT account, customer, 1000000 FROM m;
CREATE FUNCTION pg_temp.on_day(day text) RETURNS void LANGUAGE plpgsql
AS $$ BEGIN PERFORM set_config('test.now', $1 || '+00', true); END $$;
CREATE FUNCTION pg_temp.by_calendar(reference text, months smallint, first text) RETURNS text LANGUAGE sql AS $$
  SELECT outcome || coalesce(' ' || (object->>'period') || ' ' || (object->>'anchor_day'), '')
  FROM m, reclaim.billing_subscribe(account, 10, NULL, ($3 || '+00')::timestamptz, $1, $2) $$;
CREATE FUNCTION pg_temp.days(reference text) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(to_char(occurred_at AT TIME ZONE 'UTC', 'YY-MM-DD HH24:MI'), ', ' ORDER BY occurred_at)
  FROM reclaim.billing_charges c JOIN reclaim.billing_subscriptions s ON s.id = c.subscription_id WHERE s.reference = $1 $$;
CREATE FUNCTION pg_temp.due(reference text) RETURNS text LANGUAGE sql AS $$
  SELECT to_char(next_charge_at AT TIME ZONE 'UTC', 'YY-MM-DD HH24:MI') || ' ' || anchor_day FROM reclaim.billing_subscriptions s
  WHERE s.reference = $1 $$;
UPDATE reclaim.billing_subscriptions SET status = 'ended', attempt_at = NULL;
SET LOCAL TimeZone = 'Europe/Berlin'; -- whose clocks change in March and October
SELECT pg_temp.on_day('2032-01-31 23:30');
SELECT is(pg_temp.by_calendar('monthly', 1::smallint, '2032-01-31 23:30'), 'made month 31');
SELECT is(pg_temp.by_calendar('monthly', 1::smallint, '2032-01-31 23:30'), 'again month 31');
SELECT is(pg_temp.by_calendar('monthly', 12::smallint, '2032-01-31 23:30'), 'differs month 31');
SELECT pg_temp.on_day('2032-05-02 00:00');
SELECT is(pg_temp.run(), '4 0 0');
SELECT is(pg_temp.days('monthly'), '32-01-31 23:30, 32-02-29 23:30, 32-03-31 23:30, 32-04-30 23:30', 'months begin on the anchored day, or on their last');
SELECT is(pg_temp.due('monthly'), '32-05-31 23:30 31', 'in UTC, whatever the session’s time zone');
SELECT pg_temp.on_day('2032-06-01 00:00'); SELECT is(pg_temp.run(), '1 0 0');
SELECT pg_temp.on_day('2032-06-10 12:00'); SELECT pg_temp.freeze(customer) FROM m;
SELECT pg_temp.on_day('2032-06-11 13:00'); SELECT pg_temp.recover(customer) FROM m;
SELECT is(pg_temp.due('monthly'), '32-07-02 00:30 2', 'a freeze moves the next charge by its length, and the day with it');
SELECT pg_temp.on_day('2032-08-03 00:00'); SELECT is(pg_temp.run(), '2 0 0');
SELECT is(pg_temp.due('monthly'), '32-09-02 00:30 2', 'which months count from then on');
-- Due before a freeze and charged after it, which then moves the one that follows.
SELECT pg_temp.on_day('2032-09-03 00:00'); SELECT pg_temp.freeze(customer) FROM m;
SELECT pg_temp.on_day('2032-10-18 00:00'); SELECT pg_temp.recover(customer) FROM m;
SELECT is(pg_temp.run(), '1 0 0');
SELECT is(pg_temp.due('monthly'), '32-11-16 00:30 16', 'by 45 days to the hour, though the clocks changed');
SELECT pg_temp.on_day('2032-10-20 00:00'); SELECT pg_temp.freeze(customer) FROM m; SELECT pg_temp.recover(customer) FROM m;
SELECT is(pg_temp.due('monthly'), '32-11-16 00:30 16', 'a freeze without length moves nothing');
SELECT pg_temp.freeze(customer) FROM m;
SELECT pg_temp.on_day('2032-11-10 00:00'); SELECT pg_temp.recover(customer) FROM m;
SELECT is(pg_temp.due('monthly'), '32-12-07 00:30 7', 'recovery moves it by 21 days to the hour');
SELECT is(pg_temp.by_calendar('yearly', 12::smallint, '2036-02-29 08:00'), 'made year 29');
SELECT pg_temp.on_day('2040-12-01 00:00');
SELECT isnt(pg_temp.run(), '0 0 0');
SELECT is(pg_temp.days('yearly'), '36-02-29 08:00, 37-02-28 08:00, 38-02-28 08:00, 39-02-28 08:00, 40-02-29 08:00', 'years keep 29 February');
SELECT is(pg_temp.by_calendar('in a freeze', 1::smallint, '2032-10-31 00:00'), 'made month 21', 'a first charge inside a freeze is moved by it');
INSERT INTO reclaim.billing_subscriptions (billing_account_id, amount_micros, period_months, next_charge_at, reference)
  SELECT account, 1, 1, '2036-12-31 01:00+00', 'in plain SQL' FROM m;
SELECT is(pg_temp.due('in plain SQL'), '36-12-31 01:00 31', 'one that is inserted has its day');
SELECT throws_ok($q$ INSERT INTO reclaim.billing_subscriptions (billing_account_id, amount_micros, period_months, period_seconds, next_charge_at)
  SELECT account, 1, 1, 60, now() FROM m $q$, '23514', NULL, 'and no second period');
SET LOCAL TimeZone = 'UTC';

-- Rights
SELECT is((SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
  WHERE n.nspname = 'reclaim' AND has_function_privilege('public', p.oid, 'EXECUTE')), 0::bigint, 'nothing is executable by everyone');
SELECT columns_are('reclaim', 'billing_freezes', ARRAY['id', 'billing_account_id', 'frozen_at', 'thawed_at']);

SELECT * FROM finish();
ROLLBACK;
