-- What a pass over many customers reads for one page: its own rows, not all that are left or done, whatever the statistics say.
BEGIN;
SET LOCAL client_min_messages = warning;
SELECT plan(10);
DELETE FROM reclaim.cascade_participants;

-- Rows of a table that this transaction has read so far.
CREATE FUNCTION pg_temp.read_of(p_table regclass) RETURNS bigint LANGUAGE sql AS $$
  SELECT (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_xact_all_tables WHERE relid = p_table $$;
CREATE TEMPORARY TABLE before (rows bigint);

ANALYZE reclaim.customer_customers, reclaim.cascade_receipts, reclaim.erasures; -- as if no customer had ever been due
SET LOCAL session_replication_role = replica;
INSERT INTO auth.users (id, email) SELECT gen_random_uuid(), 'many.' || n || '@example.com' FROM generate_series(1, 3000) n;
INSERT INTO reclaim.customer_customers (name, email, owner_user_id, status, tm_deletion_scheduled, deletion_effective_at, frozen_by)
  SELECT 'Someone', email, id, 'frozen', now() - interval '32 days', now() - random() * interval '2 days', 'owner'
  FROM auth.users WHERE email LIKE 'many.%';
SET LOCAL session_replication_role = origin;
CREATE TABLE public.many (customer_id uuid NOT NULL);
INSERT INTO public.many SELECT id FROM reclaim.customer_customers;
CREATE INDEX ON public.many (customer_id);
INSERT INTO reclaim.cascade_participants (name, kind, table_name, customer_column) VALUES ('many', 'table', 'public.many', 'customer_id'),
  ('other', 'table', 'public.many', 'customer_id');

-- The expiry's batch.
ANALYZE reclaim.customer_customers;
CREATE TEMPORARY TABLE batch AS SELECT * FROM reclaim.expiry_lock('-infinity', '00000000-0000-0000-0000-000000000000', 100,
  reclaim.now(), 0, 1);
SELECT is((SELECT array_agg(id) FROM batch), (SELECT array_agg(c.id) FROM (SELECT id FROM reclaim.customer_customers
  ORDER BY deletion_effective_at, id LIMIT 100) c), 'a batch of the expiry has those that are due longest, in their order');
SELECT is((SELECT count(*) FROM batch WHERE email LIKE 'many.%@example.com'), 100::bigint, 'and their addresses');
INSERT INTO before SELECT pg_temp.read_of('reclaim.customer_customers');
SELECT is((SELECT count(*) FROM reclaim.expiry_lock((SELECT max(b.after::timestamptz) FROM batch b), 'ffffffff-ffff-ffff-ffff-ffffffffffff', 100,
  reclaim.now(), 0, 1)), 100::bigint, 'the next one begins behind it');
SELECT cmp_ok(pg_temp.read_of('reclaim.customer_customers') - (SELECT rows FROM before), '<', 1000::bigint, 'and does not read all that are due');

-- A page of the cascade.
SELECT is(reclaim.delete_customers(ARRAY(SELECT id FROM reclaim.customer_customers), NULL, 'expire', 'system', NULL, NULL), 3000, 'all are deleted');
UPDATE before SET rows = pg_temp.read_of('reclaim.cascade_receipts');
SELECT is((SELECT ROW(outcome, customers, finished, erased) FROM reclaim.cascade_page('many', 100)), ROW('page'::text, 100, 100, 100::bigint),
  'a page of the cascade erases what it is asked for');
SELECT cmp_ok(pg_temp.read_of('reclaim.cascade_receipts') - (SELECT rows FROM before), '<', 1000::bigint, 'and does not read all receipts');

-- Statistics from when the erasures before were complete.
UPDATE reclaim.cascade_receipts SET status = 'done', done_at = now();
UPDATE reclaim.erasures SET settled_at = now(), completed_at = now();
ANALYZE reclaim.cascade_receipts, reclaim.erasures;
UPDATE reclaim.cascade_receipts SET status = 'pending', done_at = NULL WHERE participant = 'other';
UPDATE reclaim.erasures SET settled_at = NULL, completed_at = NULL;
UPDATE before SET rows = pg_temp.read_of('reclaim.cascade_receipts') + pg_temp.read_of('reclaim.erasures');
SELECT is((SELECT finished FROM reclaim.cascade_page('other', 100)), 100, 'the last receipts of a hundred customers are written');
SELECT cmp_ok(pg_temp.read_of('reclaim.cascade_receipts') + pg_temp.read_of('reclaim.erasures') - (SELECT rows FROM before), '<', 1500::bigint,
  'without reading those of others');
SELECT is((SELECT count(*) FROM reclaim.erasures WHERE settled_at IS NOT NULL), 100::bigint, 'and their erasures are settled');
SELECT * FROM finish();
ROLLBACK;
