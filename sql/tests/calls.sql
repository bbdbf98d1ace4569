-- Calls: set-up, and the pass that ends what a frozen customer has.
BEGIN;
SELECT plan(73);

CREATE FUNCTION pg_temp.customer(n int, status text DEFAULT 'active') RETURNS uuid LANGUAGE sql AS $$
  INSERT INTO reclaim.customer_customers (id, status) VALUES (format('00000000-0000-4000-8000-%s', lpad(n::text, 12, '0'))::uuid, status)
    RETURNING id $$;
CREATE FUNCTION pg_temp.c(n int) RETURNS uuid LANGUAGE sql AS $$ SELECT format('00000000-0000-4000-8000-%s', lpad(n::text, 12, '0'))::uuid $$;
CREATE FUNCTION pg_temp.begin(customer int, sip text DEFAULT NULL, master uuid DEFAULT NULL, conf uuid DEFAULT NULL, grp uuid DEFAULT NULL,
    OUT outcome text, OUT id uuid, OUT refused uuid, OUT us bigint) LANGUAGE sql AS $$
  SELECT outcome, (call::json->>'id')::uuid, refused_customer, scheduled_us FROM reclaim.call_begin(pg_temp.c(customer), 'outgoing', '+1', '+2', sip,
    'ft', 1, master, conf, grp) $$;
CREATE FUNCTION pg_temp.status(call uuid) RETURNS text LANGUAGE sql AS $$ SELECT status FROM reclaim.call_calls WHERE id = call $$;
CREATE FUNCTION pg_temp.freeze(n int) RETURNS void LANGUAGE sql AS $$ UPDATE reclaim.customer_customers SET status = 'frozen' WHERE id = pg_temp.c(n) $$;

DO $$ BEGIN PERFORM pg_temp.customer(n) FROM generate_series(1, 6) n; PERFORM pg_temp.customer(7, 'deleted'); END $$;

-- Set-up
SELECT is((pg_temp.begin(1)).outcome, 'created', 'an active customer may call');
SELECT is((pg_temp.begin(7)).outcome, 'deleted', 'a deleted one may not');
SELECT is((pg_temp.begin(99)).outcome, 'unknown', 'nor may one that is not known');
SELECT is((pg_temp.begin(1, 'sip-1')).outcome, 'created', 'a switch asks');
SELECT is((pg_temp.begin(1, 'sip-1')).outcome, 'repeated', 'and asks again');
SELECT is((SELECT count(*) FROM reclaim.call_calls WHERE sip_call_id = 'sip-1'), 1::bigint, 'it is one call');
SELECT is((pg_temp.begin(2, 'sip-1')).outcome, 'created', 'the other end has its own');
SELECT is((pg_temp.begin(1, NULL, gen_random_uuid())).outcome, 'no_master', 'nothing is chained to nothing');
SELECT is((SELECT status FROM reclaim.call_calls WHERE sip_call_id = 'sip-1' LIMIT 1), 'dialing', 'a call begins by dialing');
SELECT throws_ok($$UPDATE reclaim.call_calls SET status = 'over'$$, '23514', NULL, 'no other status is known');
SELECT throws_ok($$UPDATE reclaim.call_calls SET status = 'hangup'$$, '23514', NULL, 'a hang-up has its time');
DO $$ BEGIN PERFORM pg_temp.freeze(1); END $$;
SELECT is((pg_temp.begin(1)).outcome, 'frozen', 'a frozen customer may not call');
SELECT is((pg_temp.begin(1)).us / 1000000, (SELECT floor(extract(epoch FROM tm_deletion_scheduled))::bigint
  FROM reclaim.customer_customers WHERE id = pg_temp.c(1)), 'and is told since when');
SELECT is((pg_temp.begin(1, 'sip-1')).outcome, 'frozen', 'not even a call it had');

-- The pass, without a switch
SELECT results_eq($$SELECT standing, left_over, marked FROM reclaim.calls_end(pg_temp.c(1))$$,
  $$VALUES ('frozen', 0::bigint, 2::bigint)$$, 'both calls are over at once');
SELECT is((SELECT array_agg(DISTINCT status || ' ' || hangup_reason) FROM reclaim.call_calls WHERE customer_id = pg_temp.c(1)),
  ARRAY['hangup account_frozen'], 'because of the freeze');
SELECT isnt((SELECT frozen_calls_at FROM reclaim.customer_customers WHERE id = pg_temp.c(1)), NULL, 'the customer says when');
SELECT is((SELECT version FROM reclaim.customer_customers WHERE id = pg_temp.c(1)), 2::bigint, 'and has not changed by that');
SELECT is((SELECT status FROM reclaim.call_calls WHERE customer_id = pg_temp.c(2)), 'dialing', 'nobody else has noticed');

-- With one
INSERT INTO reclaim.switches (name, url, address) VALUES ('east', 'https://east.example.com/RPC', '');
SELECT throws_ok($$SELECT reclaim.calls_end(pg_temp.c(1), false)$$, '55000', NULL,
  'an older program without a switch of its own ends nothing');
SELECT lives_ok($$SELECT reclaim.calls_end(pg_temp.c(1), true)$$, 'one that has a switch does');
CREATE TEMP TABLE made AS
  WITH own AS (SELECT (pg_temp.begin(3, 'a')).id AS ringing)
  SELECT ringing, (pg_temp.begin(3, 'b', NULL, pg_temp.c(500))).id AS talking, (pg_temp.begin(3)).id AS apart,
    (pg_temp.begin(4, 'd', NULL, pg_temp.c(500))).id AS other_leg FROM own;
ALTER TABLE made ADD chained uuid, ADD chained_further uuid, ADD group_first uuid, ADD group_other uuid, ADD group_of_4 uuid, ADD own_in_4 uuid;
UPDATE made SET chained = (pg_temp.begin(4, 'e', talking)).id;
UPDATE made SET chained_further = (pg_temp.begin(5, 'f', chained)).id;
UPDATE made SET group_first = (pg_temp.begin(3, 'g', NULL, NULL, pg_temp.c(600))).id;
UPDATE made SET group_other = (pg_temp.begin(4, 'h', NULL, NULL, pg_temp.c(600))).id;
UPDATE made SET group_of_4 = (pg_temp.begin(4, 'i', NULL, NULL, pg_temp.c(601))).id;
UPDATE made SET own_in_4 = (pg_temp.begin(3, 'j', NULL, NULL, pg_temp.c(601))).id;
UPDATE reclaim.call_calls SET status = 'progressing' WHERE id IN (SELECT talking FROM made UNION SELECT other_leg FROM made);
UPDATE reclaim.call_calls SET status = 'ringing' WHERE id = (SELECT ringing FROM made);
SELECT is((SELECT count(*) FROM reclaim.calls_of(pg_temp.c(3))), 8::bigint, 'its own five, two chained, one of its group call');
SELECT is((SELECT count(*) FROM reclaim.calls_end(pg_temp.c(3)) WHERE marked = 0 AND left_over = 0 AND standing = 'active'),
  1::bigint, 'an active customer’s calls are left alone');
DO $$ BEGIN PERFORM pg_temp.freeze(3); END $$;
SELECT results_eq($$SELECT standing, left_over, marked FROM reclaim.calls_end(pg_temp.c(3))$$,
  $$VALUES ('frozen', 7::bigint, 8::bigint)$$, 'what no switch knows is over, the rest is being ended');
SELECT is((SELECT pg_temp.status(ringing) FROM made), 'canceling', 'what rings is cancelled');
SELECT is((SELECT pg_temp.status(talking) FROM made), 'terminating', 'who talks is hung up on');
SELECT is((SELECT pg_temp.status(apart) FROM made), 'hangup');
SELECT is((SELECT pg_temp.status(chained) FROM made), 'canceling', 'so is what is chained to it');
SELECT is((SELECT pg_temp.status(chained_further) FROM made), 'canceling', 'and chained to that');
SELECT is((SELECT pg_temp.status(group_other) FROM made), 'canceling', 'and the rest of its group call');
SELECT is((SELECT pg_temp.status(own_in_4) FROM made), 'canceling', 'and its part in another’s');
SELECT is((SELECT pg_temp.status(group_of_4) FROM made), 'dialing', 'whose own part goes on');
SELECT is((SELECT pg_temp.status(other_leg) FROM made), 'progressing', 'and so does the conference');
SELECT is((SELECT frozen_calls_at FROM reclaim.customer_customers WHERE id = pg_temp.c(3)), NULL, 'it is not over yet');
SELECT is((SELECT hangup_reason FROM reclaim.call_calls WHERE id = (SELECT chained FROM made)), 'account_frozen');
SELECT is((pg_temp.begin(4, 'k', (SELECT talking FROM made))).outcome, 'frozen', 'nothing can be chained to a frozen customer’s call');
SELECT is((pg_temp.begin(4, 'k', (SELECT talking FROM made))).refused, pg_temp.c(3), 'which is whose fault');
SELECT is((pg_temp.begin(4, 'l', NULL, NULL, pg_temp.c(600))).outcome, 'frozen', 'nor join its group call');
SELECT is((pg_temp.begin(4, 'l', NULL, NULL, pg_temp.c(601))).outcome, 'created', 'its own it may');

-- Recovered meanwhile: what is going down goes down, and nothing else.
UPDATE reclaim.customer_customers SET status = 'active' WHERE id = pg_temp.c(3);
SELECT is((pg_temp.begin(3, 'new')).outcome, 'created', 'a recovered customer may call');
SELECT results_eq($$SELECT standing, left_over FROM reclaim.calls_end(pg_temp.c(3))$$, $$VALUES ('active', 7::bigint)$$);
SELECT is((SELECT status FROM reclaim.call_calls WHERE sip_call_id = 'new'), 'dialing', 'its new call stays');
UPDATE reclaim.call_calls SET status = 'hangup', tm_hangup = now() WHERE ending_for IS NOT NULL;
SELECT is((SELECT left_over FROM reclaim.calls_end(pg_temp.c(3))), 0::bigint);

-- Deleted
UPDATE reclaim.customer_customers SET status = 'deleted' WHERE id = pg_temp.c(4);
UPDATE reclaim.call_calls SET tm_delete = now() WHERE customer_id = pg_temp.c(4);
SELECT is((SELECT left_over FROM reclaim.calls_end(pg_temp.c(4))) > 0, true, 'a deleted customer’s calls end too, soft-deleted or not');
SELECT is((SELECT hangup_reason FROM reclaim.call_calls WHERE id = (SELECT other_leg FROM made)), 'account_deleted');
SELECT is((SELECT count(*) FROM reclaim.call_calls WHERE tm_delete IS NOT NULL AND (source <> '' OR destination <> '')), 0::bigint,
  'what is deleted keeps no number');

-- Several switches
CREATE FUNCTION pg_temp.at(customer int, sip text, at text) RETURNS text LANGUAGE sql AS $$
  SELECT outcome || coalesce(' ' || (call::json ->> 'switch'), '') FROM reclaim.call_begin(pg_temp.c(customer), 'outgoing', '+1', '+2', sip,
    'ft', 1, NULL, NULL, NULL, at) $$;
SELECT is(pg_temp.at(6, 's1', NULL), 'created east', 'a call is at the only switch');
SELECT is(pg_temp.at(6, 's1', 'east'), 'repeated east', 'whether it says so or not');
SELECT is(pg_temp.at(6, 's2', 'west'), 'no_switch', 'none is invented');
INSERT INTO reclaim.switches (name, url, address) VALUES ('west', 'https://west.example.com/RPC', '');
SELECT is(pg_temp.at(6, 's2', NULL), 'which_switch', 'with two it must say which');
SELECT is(pg_temp.at(6, NULL, NULL), 'created', 'unless it has no dialog');
SELECT is(pg_temp.at(6, 's2', 'west'), 'created west');
SELECT is(pg_temp.at(6, 's2', 'east'), 'created east', 'a dialog at each switch is a call of its own');
SELECT is(pg_temp.at(7, 's3', 'north'), 'deleted', 'a refused customer is not told about switches');
SELECT throws_ok($$INSERT INTO reclaim.switches (name, address) VALUES ('south', '')$$, '23514', NULL,
  'only the setting has its address elsewhere');
SELECT throws_ok($$INSERT INTO reclaim.switches (name, url, address) VALUES ('a b', 'x', '')$$, '23514', NULL);
SELECT results_eq($$SELECT outcome, live FROM reclaim.switch_remove('west', false)$$, $$VALUES ('busy', 1::bigint)$$,
  'a switch with calls stays');
SELECT results_eq($$SELECT outcome, live FROM reclaim.switch_remove('west', true)$$, $$VALUES ('removed', 1::bigint)$$);
SELECT is((SELECT outcome FROM reclaim.switch_remove('west', true)), 'unknown');
DO $$ BEGIN PERFORM pg_temp.freeze(6); END $$;
SELECT results_eq($$SELECT standing, left_over FROM reclaim.calls_end(pg_temp.c(6))$$, $$VALUES ('frozen', 2::bigint)$$,
  'calls at a switch that was removed end in the table, the others wait');
SELECT is((SELECT frozen_calls_at FROM reclaim.customer_customers WHERE id = pg_temp.c(6)), NULL, 'for their switch');

-- Many at once; without the items of their own freezes
DO $$ BEGIN PERFORM pg_temp.customer(n, CASE WHEN n = 22 THEN 'active' ELSE 'frozen' END) FROM generate_series(20, 22) n; END $$;
DELETE FROM reclaim.work_items;
SELECT is(reclaim.calls_end_many(ARRAY[pg_temp.c(6), pg_temp.c(20), pg_temp.c(21), pg_temp.c(22), pg_temp.c(98)]), 1::bigint,
  'only one has calls');
SELECT is((SELECT array_agg(payload ->> 'customer_id') FROM reclaim.work_items WHERE kind = 'hangup'), ARRAY[pg_temp.c(6)::text]);
SELECT is((SELECT count(*) FROM reclaim.customer_customers WHERE id IN (pg_temp.c(20), pg_temp.c(21), pg_temp.c(22)) AND frozen_calls_at IS NOT NULL),
  2::bigint, 'the frozen ones without calls have it');

-- A row that is gone
DELETE FROM reclaim.customer_customers WHERE id = pg_temp.c(5);
DELETE FROM reclaim.work_items WHERE payload ->> 'customer_id' = pg_temp.c(5)::text;
INSERT INTO reclaim.call_calls (customer_id, direction) VALUES (pg_temp.c(5), 'incoming');
SELECT is((SELECT standing || ' ' || marked FROM reclaim.calls_end(pg_temp.c(5))), 'deleted 1', 'a customer without a row was deleted');

-- Calls that only others can end
CREATE FUNCTION pg_temp.hand_over() RETURNS boolean LANGUAGE sql AS $$
  SELECT reclaim.hangup_hand_over(w.id, pg_temp.c(6)) FROM reclaim.work_items w WHERE kind = 'hangup' $$;
CREATE FUNCTION pg_temp.items(k text) RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM reclaim.work_items WHERE kind = k $$;
SELECT is(pg_temp.hand_over(), false, 'a switch that everybody reaches is left to nobody');
INSERT INTO reclaim.switches (name, address) VALUES ('default', '');
SELECT is(pg_temp.hand_over(), true);
SELECT is(pg_temp.hand_over(), true, 'asked again');
SELECT is(pg_temp.items('hangup_by_setting'), 1::bigint, 'it is left once');
SELECT is((reclaim.switch_add('default', 'https://sip.example.com/RPC')).added, false);
SELECT is(pg_temp.items('hangup_by_setting'), 0::bigint, 'an address in the table takes it back');

SELECT is_empty($$SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'reclaim'::regnamespace
  AND has_function_privilege('public', oid, 'EXECUTE')$$, 'PUBLIC makes no calls');
SELECT has_index('reclaim', 'call_calls', 'call_live_by_ending', 'what is being ended is found fast');

SELECT * FROM finish();
ROLLBACK;
