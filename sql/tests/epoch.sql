-- What events carry after a restore: sequences come again under the next epoch.
BEGIN;
SELECT plan(17);

CREATE FUNCTION pg_temp.events() RETURNS TABLE (epoch integer, sequence bigint, type text) LANGUAGE sql AS
  $$ SELECT o.epoch, o.sequence, o.type FROM reclaim.event_outbox o WHERE o.customer_id = '10000000-0000-4000-8000-000000000001' ORDER BY o.position $$;
SELECT is((SELECT epoch FROM reclaim.installation), 1, 'an installation begins with epoch 1');
SELECT throws_ok('UPDATE reclaim.installation SET epoch = 0', '23514', NULL, 'there is none below');

INSERT INTO reclaim.customer_customers (id, name) VALUES ('10000000-0000-4000-8000-000000000001', 'One');
UPDATE reclaim.customer_customers SET status = 'frozen' WHERE name = 'One';
UPDATE reclaim.customer_customers SET status = 'active' WHERE name = 'One';
SELECT results_eq('SELECT * FROM pg_temp.events()', $$VALUES (1, 2::bigint, 'customer_frozen'), (1, 3, 'customer_recovered')$$, 'events have the epoch');

-- A restored database: the version has gone back, rows of the outbox may be there or not.
SET LOCAL session_replication_role = replica;
UPDATE reclaim.customer_customers SET version = 1 WHERE name = 'One';
UPDATE reclaim.customer_told SET version = 1;
SET LOCAL session_replication_role = origin;
SAVEPOINT same_epoch;
SELECT throws_ok($$UPDATE reclaim.customer_customers SET status = 'frozen' WHERE name = 'One'$$, '23505', NULL, 'a sequence is told once in an epoch');
ROLLBACK TO same_epoch;
UPDATE reclaim.installation SET epoch = 2;
UPDATE reclaim.customer_customers SET status = 'frozen' WHERE name = 'One';
SELECT results_eq('SELECT * FROM pg_temp.events()',
  $$VALUES (1, 2::bigint, 'customer_frozen'), (1, 3, 'customer_recovered'), (2, 2, 'customer_frozen')$$, 'and once more in the next');
SELECT is((SELECT count(*) FROM (SELECT (o.epoch, o.sequence) <= (lag(o.epoch) OVER w, lag(o.sequence) OVER w) AS backwards
  FROM reclaim.event_outbox o WINDOW w AS (PARTITION BY o.customer_id ORDER BY o.position)) e WHERE e.backwards), 0::bigint,
  'in the order of position epoch and sequence grow');

-- The freeze that counts is that of the last epoch, though one before has a higher sequence.
INSERT INTO reclaim.event_outbox (epoch, sequence, type, customer_id, payload, created_at, published_at)
  VALUES (1, 9, 'customer_frozen', '10000000-0000-4000-8000-000000000001', '{}', now(), now() + interval '9 seconds');
UPDATE reclaim.event_outbox SET published_at = created_at + interval '1 second' WHERE epoch = 2;
SELECT is((SELECT (reclaim.freeze_by_layer(c) ->> 'events_ms')::int FROM reclaim.customer_customers c WHERE c.name = 'One'), 1000,
  'the console shows the last freeze');
INSERT INTO reclaim.event_returns (event_id, position) SELECT id, position FROM reclaim.event_outbox WHERE epoch = 2;
SELECT is((SELECT object::jsonb -> 'epoch' FROM reclaim.dead_letters(NULL, 10)), '2'::jsonb, 'and the epoch of an event that was returned');

-- A deletion that is told again has the epoch in force.
INSERT INTO reclaim.cascade_participants (name, kind) VALUES ('files', 'remote');
UPDATE reclaim.customer_customers SET status = 'deleted' WHERE name = 'One';
SELECT is((SELECT epoch FROM pg_temp.events() WHERE type = 'customer_deleted'), 2, 'a deletion has the epoch');
UPDATE reclaim.event_outbox SET published_at = now() WHERE published_at IS NULL;
SELECT lives_ok($$SELECT reclaim.cascade_tell('files', NULL)$$, 'it can be told again');
SELECT is((SELECT count(*) FROM reclaim.event_outbox WHERE type = 'customer_deleted' AND published_at IS NULL), 1::bigint, 'by its own row');
UPDATE reclaim.installation SET epoch = 3;
DELETE FROM reclaim.event_outbox WHERE type = 'customer_deleted';
SELECT lives_ok($$SELECT reclaim.cascade_tell('files', NULL)$$, 'even after it was pruned');
SELECT is((SELECT epoch FROM pg_temp.events() WHERE type = 'customer_deleted'), 3, 'then in the epoch in force');
SELECT is((SELECT sequence FROM pg_temp.events() WHERE type = 'customer_deleted'), (SELECT version FROM reclaim.customer_told), 'with the version that was told');

-- After a restore the events of a customer that consumers may have dropped get the next epoch: from the time on from which they may have, or
-- while they wait for the broker; all that follow, or none.
INSERT INTO reclaim.event_outbox (epoch, sequence, type, customer_id, payload, created_at, published_at)
  SELECT n.epoch, n.sequence, 'customer_frozen', ('20000000-0000-4000-8000-00000000000' || n.customer)::uuid, '{}', now() - n.ago, CASE WHEN n.published THEN now() - n.ago END
    FROM (VALUES (1, 1, 2, interval '3 hours', true), (3, 1, 5, interval '3 hours', false), (3, 1, 6, interval '3 hours', true),
      (4, 1, 5, interval '3 hours', false), (1, 1, 3, interval '0', true), (2, 1, 2, interval '0', true), (2, 2, 3, interval '0', true))
      AS n (customer, epoch, sequence, ago, published);
SELECT is(reclaim.events_again(7, 1, now() - interval '1 hour'), 2::bigint, 'after a restore, two events are published again');
SELECT results_eq($$SELECT right(o.customer_id::text, 1), o.epoch, o.sequence, o.published_at IS NULL FROM reclaim.event_outbox o
  WHERE o.customer_id::text LIKE '2%' ORDER BY 1, o.position$$,
  $$VALUES ('1', 1, 2::bigint, false), ('1', 7, 3, true), ('2', 1, 2, false), ('2', 2, 3, false), ('3', 1, 5, true), ('3', 1, 6, false), ('4', 7, 5, true)$$,
  'of each customer the last, unless consumers have a newer one');
UPDATE reclaim.event_outbox SET published_at = NULL;
SELECT is(reclaim.events_again(8, 7, NULL), 0::bigint, 'without a broker none is for what is older');

SELECT * FROM finish();
ROLLBACK;
