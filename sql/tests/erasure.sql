-- Deleting customers and erasing what participants have of them.
BEGIN;
SET LOCAL client_min_messages = warning;
SELECT plan(64);
DELETE FROM reclaim.cascade_participants; -- those of these tests only

CREATE FUNCTION pg_temp.id(n integer) RETURNS uuid LANGUAGE sql AS $$ SELECT ('a0000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
CREATE FUNCTION pg_temp.owner(n integer) RETURNS uuid LANGUAGE sql AS $$ SELECT ('b0000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
CREATE FUNCTION pg_temp.gone(n integer) RETURNS integer LANGUAGE sql AS $$
  SELECT reclaim.delete_customers(ARRAY[pg_temp.id(n)], NULL, 'delete', 'admin', NULL, NULL) $$;

INSERT INTO auth.users (id, email, encrypted_password, raw_app_meta_data)
  SELECT pg_temp.owner(n), 'owner' || n || '@example.com', 'hash', '{"name":"Owner"}' FROM generate_series(1, 6) n;
INSERT INTO reclaim.customer_customers (id, name, detail, email, phone_number, address, webhook_method, webhook_uri, owner_user_id)
  SELECT pg_temp.id(n), 'Name ' || n, 'Detail', 'owner' || n || '@example.com', '+4912345', 'Street 1', 'POST', 'https://hook.example.com/', pg_temp.owner(n)
  FROM generate_series(1, 6) n;
INSERT INTO reclaim.event_outbox (sequence, type, customer_id, payload)
  SELECT 0, 'customer_frozen', c.id, reclaim.customer_object(c)::jsonb FROM reclaim.customer_customers c;
INSERT INTO reclaim.access_keys (customer_id, key_hash, name) VALUES (pg_temp.id(1), 'k1', 'Name 1');
INSERT INTO reclaim.billing_accounts (customer_id, name) VALUES (pg_temp.id(1), 'Name 1');
INSERT INTO reclaim.customer_log (customer_id, action, actor, outcome, detail) VALUES (pg_temp.id(1), 'hold', 'admin', 'done', 'case of Name 1');
INSERT INTO reclaim.reminders VALUES (pg_temp.id(1), now(), 1);

-- One customer, no participant.
SELECT is(reclaim.delete_customers(ARRAY[pg_temp.id(1)], ARRAY['sealed'], 'expire', 'system', NULL, NULL), 1, 'one is deleted');
SELECT row_eq($$SELECT name, detail, email, phone_number, address, webhook_method, webhook_uri, status FROM reclaim.customer_customers WHERE id = pg_temp.id(1)$$,
  ROW('deleted_user_' || pg_temp.id(1), ''::text, 'deleted_' || pg_temp.id(1) || '@removed.invalid', ''::text, ''::text, ''::text, ''::text, 'deleted'::text),
  'nothing personal is left of it');
SELECT isnt(tm_delete, NULL, 'status and time together') FROM reclaim.customer_customers WHERE id = pg_temp.id(1);
SELECT is(version, 2::bigint, 'its version has grown') FROM reclaim.customer_customers WHERE id = pg_temp.id(1);
SELECT is((SELECT count(*) FROM auth.users WHERE id = pg_temp.owner(1)), 0::bigint, 'its login is gone');
SELECT isnt(revoked_at, NULL, 'its keys are revoked') FROM reclaim.access_keys WHERE customer_id = pg_temp.id(1);
SELECT row_eq($$SELECT status, tm_delete IS NOT NULL, name FROM reclaim.billing_accounts WHERE customer_id = pg_temp.id(1)$$,
  ROW('deleted'::text, true, ''::text), 'so are its billing accounts');
SELECT is(payload ->> 'email', 'deleted_' || pg_temp.id(1) || '@removed.invalid', 'the event tells nothing personal')
  FROM reclaim.event_outbox WHERE customer_id = pg_temp.id(1) AND type = 'customer_deleted';
SELECT is((SELECT sequence FROM reclaim.event_outbox WHERE customer_id = pg_temp.id(1) AND type = 'customer_deleted'), 2::bigint, 'its sequence is the version');
SELECT is((SELECT count(*) FROM reclaim.event_outbox WHERE customer_id = pg_temp.id(1) AND payload::text ~ 'Name|example.com|Street|4912345'), 0::bigint,
  'nor do the events before it');
SELECT is((SELECT string_agg(action || detail, ',' ORDER BY id) FROM reclaim.customer_log WHERE customer_id = pg_temp.id(1)), 'hold,expire', 'the audit keeps what was done, not the words');
SELECT is((SELECT count(*) FROM reclaim.reminders), 0::bigint, 'no reminder stays');
SELECT is((SELECT payload FROM reclaim.work_items), jsonb_build_object('template', 'customer-deleted', 'customer_id', pg_temp.id(1), 'sealed', 'sealed'), 'a last mail is promised');
-- What the leader does when it has proved them.
UPDATE reclaim.erasures SET completed_at = settled_at, certificate_id = gen_random_uuid() WHERE settled_at IS NOT NULL;
SELECT is(reclaim.erasure_ledger(pg_temp.id(1)) ->> 'status', 'complete', 'without participants the erasure is settled at once');
SELECT is(reclaim.erasure_ledger(pg_temp.id(2)) ->> 'status', 'not_started', 'one that nobody asked for has not started');
SELECT is(reclaim.erasure_ledger(pg_temp.id(99))::text, NULL, 'nobody has no ledger');
SELECT is((SELECT count(*) FROM reclaim.customer_customers WHERE status = 'active'), 5::bigint, 'the others stay');

-- A login that another table will not let go.
INSERT INTO public.companies (owner_admin_uuid) VALUES (pg_temp.owner(2));
SELECT lives_ok($$SELECT pg_temp.gone(2)$$, 'a customer whose owner has a company can go');
SELECT row_eq($$SELECT email::text, encrypted_password::text, deleted_at IS NOT NULL, raw_app_meta_data FROM auth.users WHERE id = pg_temp.owner(2)$$,
  ROW('deleted_' || pg_temp.owner(2) || '@removed.invalid', ''::text, true, '{}'::jsonb), 'the login is made unusable and unrecognisable');
SELECT lives_ok($$INSERT INTO auth.users (email) VALUES ('owner1@example.com'), ('owner2@example.com')$$, 'both addresses can register again');
-- One that is kept by something two steps away is found out by trying.
CREATE TABLE public.far (id uuid REFERENCES auth.users ON DELETE CASCADE, UNIQUE (id));
CREATE TABLE public.farther (id uuid REFERENCES public.far (id));
INSERT INTO public.far VALUES (pg_temp.owner(3));
INSERT INTO public.farther VALUES (pg_temp.owner(3));
SELECT is(reclaim.delete_customers(ARRAY[pg_temp.id(3), pg_temp.id(4)], NULL, 'delete', 'admin', NULL, NULL), 2, 'two at once');
SELECT is((SELECT string_agg(id::text || coalesce(deleted_at::date::text, ''), ',') FROM auth.users WHERE id IN (pg_temp.owner(3), pg_temp.owner(4))),
  pg_temp.owner(3) || current_date::text, 'one login stays unusable, the other goes');

-- Participants: what is wrong is said, with what to do.
CREATE TABLE public.contact (id integer GENERATED ALWAYS AS IDENTITY, customer_id uuid, name text);
CREATE TABLE public.tag (customer_id text, label text NOT NULL, tm_delete timestamptz);
CREATE TABLE public.odd (customer_id integer);
CREATE VIEW public.seen AS SELECT * FROM public.contact;
SELECT is(reclaim.cascade_add('x', 'nowhere', 'customer_id', NULL, NULL, NULL, false), 'there is no table nowhere');
SELECT is(reclaim.cascade_add('x', 'seen', 'customer_id', NULL, NULL, NULL, false), 'public.seen is not a table');
SELECT is(reclaim.cascade_add('x', 'contact', 'who', NULL, NULL, NULL, false), 'public.contact has no column who');
SELECT is(reclaim.cascade_add('x', 'odd', 'customer_id', NULL, NULL, NULL, false), 'public.odd.customer_id is of type integer; the customer''s id must be a uuid, text or varchar');
SELECT is(reclaim.cascade_add('x', 'public.contact', 'customer_id', NULL, NULL, NULL, false),
  'public.contact has no index that starts with customer_id: CREATE INDEX CONCURRENTLY ON public.contact (customer_id)');
SELECT is(reclaim.cascade_add('x', 'reclaim.customer_customers', 'id', NULL, NULL, NULL, false), 'reclaim.customer_customers is looked after by Reclaim itself');
CREATE INDEX ON public.contact (customer_id);
CREATE INDEX ON public.tag (customer_id);
SELECT is(reclaim.cascade_add('x', 'contact', 'customer_id', 'name', NULL, NULL, false), 'public.contact has no column name that holds a time');
SELECT is(reclaim.cascade_add('x', 'tag', 'customer_id', 'tm_delete', '{colour}', NULL, false), 'public.tag has no column colour');
SELECT is((SELECT count(*) FROM reclaim.cascade_participants), 0::bigint, 'none of these takes part');
SELECT is(reclaim.cascade_add('contact', 'contact', 'customer_id', NULL, NULL, 3, false), NULL, 'a table that is fit does');
SELECT is(reclaim.cascade_add('tag', 'tag', 'customer_id', 'tm_delete', '{label}', NULL, false), NULL, 'and one whose rows are only marked');
SELECT is(reclaim.cascade_add('mailer', NULL, NULL, NULL, NULL, NULL, false), NULL, 'and a service elsewhere');

-- Pages.
INSERT INTO public.contact (customer_id, name) SELECT pg_temp.id(5), 'c' || n FROM generate_series(1, 7) n;
INSERT INTO public.contact (customer_id, name) VALUES (pg_temp.id(6), 'stays');
INSERT INTO public.tag VALUES (pg_temp.id(5), 'mine', NULL), (pg_temp.id(5), 'old', '2001-01-01'), (pg_temp.id(5), 'far', '9999-01-01'), (pg_temp.id(6), 'stays', NULL);
SELECT is(reclaim.erasure_preview(pg_temp.id(5), 5)::jsonb -> 'participants',
  '[{"name": "contact", "label": "", "kind": "table", "rows": 5, "more": true, "error": null}, {"name": "mailer", "label": "", "kind": "remote", "rows": null, "more": false, "error": null},
    {"name": "tag", "label": "", "kind": "table", "rows": 3, "more": false, "error": null}]'::jsonb, 'a preview counts up to a bound');
DO $$ BEGIN PERFORM pg_temp.gone(5); END $$;
SELECT is(reclaim.erasure_ledger(pg_temp.id(5)) ->> 'status', 'pending', 'with participants the erasure is pending');
SELECT row_eq($$SELECT outcome, customers, finished, erased FROM reclaim.cascade_page('contact', 10)$$, ROW('page'::text, 1, 0, 3::bigint), 'a page is as long as the participant wants it');
SELECT row_eq($$SELECT status, rows FROM reclaim.cascade_receipts WHERE participant = 'contact'$$, ROW('pending'::text, 3::bigint), 'and counted');
SELECT is((SELECT finished FROM reclaim.cascade_page('contact', 10)), 0, 'pages go on');
SELECT is((SELECT finished FROM reclaim.cascade_page('contact', 10)), 1, 'until nothing is left');
SELECT row_eq($$SELECT status, rows, tries FROM reclaim.cascade_receipts WHERE participant = 'contact'$$, ROW('done'::text, 7::bigint, 1), 'the receipt has them all');
SELECT is((SELECT outcome FROM reclaim.cascade_page('contact', 10)), 'idle', 'then there is nothing to do');
SELECT is((SELECT string_agg(name, ',') FROM public.contact), 'stays', 'others keep theirs');
SELECT is((SELECT erased FROM reclaim.cascade_page('tag', 10)), 3::bigint, 'marked, and emptied where they were marked before');
SELECT is((SELECT count(*) FROM public.tag WHERE customer_id = pg_temp.id(5)::text AND tm_delete <= clock_timestamp() AND label = ''), 3::bigint);
SELECT is((SELECT tm_delete FROM public.tag WHERE customer_id = pg_temp.id(5)::text ORDER BY tm_delete LIMIT 1), '2001-01-01'::timestamptz, 'with the time they had');
SELECT is(reclaim.erasure_ledger(pg_temp.id(5)) ->> 'status', 'pending', 'the service elsewhere is still missing');
SELECT is(reclaim.cascade_receive(pg_temp.id(5), 'contact', true, 1, NULL), 'missing', 'a table has no receipt from elsewhere');
SELECT is(reclaim.cascade_receive(pg_temp.id(6), 'mailer', true, 1, NULL), 'missing', 'nor has who was not deleted');
SELECT is(reclaim.cascade_receive(pg_temp.id(5), 'mailer', false, NULL, 'down'), 'failed', 'it may say that it failed');
SELECT is(reclaim.cascade_receive(pg_temp.id(5), 'mailer', true, 4, NULL), 'done', 'and later that it is done');
SELECT is(reclaim.cascade_receive(pg_temp.id(5), 'mailer', true, 9, NULL), 'unchanged', 'a repeat changes nothing');
-- What the leader does when it has proved them.
UPDATE reclaim.erasures SET completed_at = settled_at, certificate_id = gen_random_uuid() WHERE settled_at IS NOT NULL;
SELECT is(reclaim.erasure_ledger(pg_temp.id(5)) ->> 'status', 'complete', 'with the last receipt it is settled');

-- Failing: of one customer, and of the participant.
CREATE FUNCTION pg_temp.keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'about %', OLD.name; END $$;
CREATE TRIGGER keep BEFORE DELETE ON public.contact FOR EACH ROW WHEN (OLD.name = 'stays') EXECUTE FUNCTION pg_temp.keep();
INSERT INTO reclaim.customer_customers (id) VALUES (pg_temp.id(7));
DO $$ BEGIN PERFORM reclaim.delete_customers(ARRAY[pg_temp.id(6), pg_temp.id(7)], NULL, 'delete', 'admin', NULL, NULL); END $$;
SELECT is((SELECT outcome FROM reclaim.cascade_page('contact', 10)), 'split', 'one of several that fails has them asked for one by one');
SELECT results_eq($$SELECT (SELECT outcome FROM reclaim.cascade_page('contact', 1)) FROM generate_series(1, 1)$$, ARRAY['failed'], 'then it fails alone');
SELECT row_eq($$SELECT status, error, tries FROM reclaim.cascade_receipts WHERE customer_id = pg_temp.id(6) AND participant = 'contact'$$,
  ROW('failed'::text, 'P0001'::text, 1), 'a trigger''s words are not kept');
SELECT is((SELECT finished FROM reclaim.cascade_page('contact', 10)), 1, 'the others finish');
DROP TRIGGER keep ON public.contact;
SELECT is((SELECT outcome FROM reclaim.cascade_page('contact', 10)), 'idle', 'a failed one waits');
SELECT is(reclaim.cascade_redrive(NULL, 'contact'), 1::bigint, 'redriving');
SELECT is((SELECT finished FROM reclaim.cascade_page('contact', 10)), 1, 'ends the waiting');
DROP TABLE public.tag;
SELECT is((SELECT error FROM reclaim.cascade_page('tag', 10)), '42P01 there is no table public.tag', 'a table that is gone');
SELECT is((SELECT outcome FROM reclaim.cascade_page('tag', 10)), 'idle', 'makes its participant wait');

-- Reminders.
INSERT INTO reclaim.customer_customers (id, status, tm_deletion_scheduled) VALUES (pg_temp.id(8), 'frozen', now() - interval '25 days');
SELECT results_eq($$SELECT reclaim.remind(604800000, 86400000, 10) FROM generate_series(1, 1) UNION ALL SELECT reclaim.remind(86400000, 0, 10)$$, ARRAY[1, 0], 'one is due');
SELECT is(reclaim.remind(604800000, 86400000, 10), 0, 'once');

SELECT * FROM finish();
ROLLBACK;
