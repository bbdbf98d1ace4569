-- Objects in Supabase Storage: what is queued, for whom, and what becomes of the receipts.
BEGIN;
SELECT plan(31);

CREATE FUNCTION pg_temp.user(n integer) RETURNS uuid LANGUAGE sql IMMUTABLE AS
  $$ SELECT ('20000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
CREATE FUNCTION pg_temp.customer(n integer) RETURNS uuid LANGUAGE sql IMMUTABLE AS
  $$ SELECT ('10000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
CREATE FUNCTION pg_temp.receipt(n integer) RETURNS text LANGUAGE sql AS
  $$ SELECT concat_ws(' ', status, rows, late_rows, error) FROM reclaim.cascade_receipts WHERE customer_id = pg_temp.customer(n) AND participant = 'avatars' $$;
CREATE FUNCTION pg_temp.open() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM reclaim.work_items WHERE kind = 'storage' $$;
INSERT INTO auth.users (id, email, encrypted_password, email_confirmed_at)
  SELECT pg_temp.user(n), 'user' || n || '@example.com', '', now() FROM generate_series(1, 9) AS n;
INSERT INTO reclaim.customer_customers (id, owner_user_id) SELECT pg_temp.customer(n), pg_temp.user(n) FROM generate_series(1, 5) AS n;
INSERT INTO reclaim.customer_members (customer_id, user_id) VALUES (pg_temp.customer(1), pg_temp.user(6)), (pg_temp.customer(1), pg_temp.user(7)),
  (pg_temp.customer(2), pg_temp.user(7));

DELETE FROM reclaim.cascade_participants; -- Reclaim's own, which would keep the erasures open
SELECT is(reclaim.storage_add('reclaim.own', 'b', '{user}/', false, NULL), 'names that begin with reclaim. are Reclaim''s own');
SELECT is(reclaim.storage_add('avatars', 'pictures', 'v1/{user}/', false, 'Pictures'), NULL, 'a bucket takes part');
SELECT is((SELECT concat_ws(' ', kind, id_of, bucket, prefix, label) FROM reclaim.cascade_participants WHERE name = 'avatars'),
  'storage user pictures v1/{user}/ Pictures');
SELECT is(reclaim.storage_promise(2), 0, 'without a deletion nothing is queued');
SELECT reclaim.delete_customers(ARRAY(SELECT pg_temp.customer(n) FROM generate_series(1, 4) AS n), ARRAY[NULL, NULL, NULL, NULL], 'delete', 'operator', NULL, NULL);
SELECT is(reclaim.storage_promise(3), 3, 'three at a time');
SELECT is(reclaim.storage_promise(3), 0, 'and no more while these are open');
SELECT is(pg_temp.open(), 3::bigint);
SELECT is((SELECT payload ->> 'participant' FROM reclaim.work_items WHERE kind = 'storage' LIMIT 1), 'avatars', 'an item names the bucket''s participant');
SELECT results_eq(format('SELECT bucket, folder FROM reclaim.storage_folders(%L, %L)', pg_temp.customer(1), 'avatars'),
  format('SELECT %L::text, %L || id || %L FROM unnest(%L::uuid[]) AS id', 'pictures', 'v1/', '/', ARRAY[pg_temp.user(1), pg_temp.user(6), pg_temp.user(7)]),
  'of the users whose logins went, the last of a shared one too');
SELECT is_empty(format('SELECT FROM reclaim.storage_folders(%L, %L)', pg_temp.customer(5), 'avatars'), 'nothing for a customer that is there');
SELECT is_empty(format('SELECT FROM reclaim.storage_folders(%L, %L)', pg_temp.customer(1), 'other'), 'nor for another participant');

SELECT reclaim.storage_note(pg_temp.customer(1), 'avatars', 100, 'going', NULL);
SELECT is(pg_temp.receipt(1), 'pending 100 0', 'progress is counted');
SELECT reclaim.storage_note(pg_temp.customer(1), 'avatars', 5, 'failed', 'some words');
SELECT is(pg_temp.receipt(1), 'failed 105 0 some words', 'a failure keeps the count');
SELECT ok((SELECT next_try_at > clock_timestamp() FROM reclaim.cascade_receipts WHERE customer_id = pg_temp.customer(1) AND participant = 'avatars'), 'and pauses for that customer');
SELECT reclaim.storage_note(pg_temp.customer(1), 'avatars', 2, 'done', NULL);
SELECT is(pg_temp.receipt(1), 'done 107 0', 'what is done has no error any more');
-- What the leader does when it has proved them.
UPDATE reclaim.erasures SET completed_at = settled_at, certificate_id = gen_random_uuid() WHERE settled_at IS NOT NULL;
SELECT ok((SELECT completed_at IS NOT NULL FROM reclaim.erasures WHERE customer_id = pg_temp.customer(1)), 'with the last receipt the erasure is settled');

SELECT reclaim.storage_note(pg_temp.customer(2), 'avatars', 0, 'stopped', 'no key');
SELECT ok((SELECT retry_at > clock_timestamp() FROM reclaim.cascade_participants WHERE name = 'avatars'), 'a failure of all pauses the participant');
DELETE FROM reclaim.work_items WHERE kind = 'storage';
SELECT is(reclaim.storage_promise(3), 0, 'for which nothing is queued meanwhile');
SELECT is(reclaim.cascade_redrive(pg_temp.customer(2), NULL) > 0, true);
SELECT is(reclaim.storage_promise(1), 1, 'a redrive ends the pause');
SELECT reclaim.storage_note(pg_temp.customer(2), 'avatars', 1, 'done', NULL);

-- Looking again.
SELECT is(reclaim.cascade_rescan_ask(pg_temp.customer(1)), 1::bigint);
SELECT reclaim.cascade_rescan(10);
SELECT is((SELECT count(*) FROM reclaim.storage_checks), 1::bigint, 'a rescan notes that the API is to be asked');
DELETE FROM reclaim.work_items WHERE kind = 'storage';
UPDATE reclaim.cascade_receipts SET next_try_at = 'infinity' WHERE status <> 'done';
SELECT is(reclaim.storage_promise(3), 1, 'which is then queued');
SELECT is(pg_temp.receipt(1), 'done 107 0', 'without opening the receipt');
SELECT reclaim.storage_note(pg_temp.customer(1), 'avatars', 0, 'done', NULL);
SELECT is(pg_temp.receipt(1), 'done 107 0', 'nothing new changes nothing');
SELECT reclaim.storage_note(pg_temp.customer(1), 'avatars', 3, 'going', NULL);
SELECT is(pg_temp.receipt(1), 'done 110 3', 'what came late is counted apart');
SELECT reclaim.storage_note(pg_temp.customer(1), 'avatars', 0, 'failed', 'some words');
SELECT is((SELECT due_at > clock_timestamp() + interval '50 minutes' FROM reclaim.storage_checks), true, 'a look that failed has its turn again in an hour');
SELECT is(reclaim.cascade_switch('avatars', 'disable'), NULL);
SELECT is((SELECT count(*) FROM reclaim.storage_checks), 0::bigint, 'one that takes no part is not looked at');
SELECT is_empty(format('SELECT FROM reclaim.storage_folders(%L, %L)', pg_temp.customer(3), 'avatars'), 'and items that are open find nothing to do');
SELECT is(reclaim.cascade_receive(pg_temp.customer(3), 'avatars', true, 1, NULL), 'missing', 'no service can report for it');

SELECT * FROM finish();
ROLLBACK;
