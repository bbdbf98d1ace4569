-- Reminders of a deletion whose date a legal hold has moved.
BEGIN;
SELECT plan(9);

CREATE FUNCTION pg_temp.go(days numeric) RETURNS void LANGUAGE sql
AS $$ UPDATE reclaim.installation SET clock_shift = days * interval '24 hours' $$;
CREATE FUNCTION pg_temp.remind() RETURNS text LANGUAGE sql
AS $$ SELECT reclaim.remind(604800000, 86400000, 10) || ' ' || reclaim.remind(86400000, 0, 10) $$;
CREATE FUNCTION pg_temp.mails() RETURNS bigint LANGUAGE sql
AS $$ SELECT count(*) FROM reclaim.work_items WHERE payload ->> 'template' = 'customer-moved' $$;
UPDATE reclaim.installation SET mails = true, grace = interval '720 hours';
CREATE TEMP TABLE c AS SELECT gen_random_uuid() AS reminded, gen_random_uuid() AS held;
INSERT INTO reclaim.customer_customers (id, status) SELECT reminded, 'frozen' FROM c UNION ALL SELECT held, 'frozen' FROM c;
UPDATE reclaim.customer_customers SET hold_at = now(), hold_reason = 'a case' WHERE id = (SELECT held FROM c);
SELECT pg_temp.go(24);
SELECT is(pg_temp.remind(), '1 0', 'a week before there is a reminder, none under legal hold');
SELECT pg_temp.go(29.5);
SELECT is(pg_temp.remind(), '0 1', 'and one a day before');
UPDATE reclaim.customer_customers SET hold_at = now(), hold_reason = 'a case' WHERE id = (SELECT reminded FROM c);
SELECT pg_temp.go(40);
SELECT is(pg_temp.remind(), '0 0', 'none while the hold lasts');
UPDATE reclaim.customer_customers SET hold_at = NULL, hold_reason = NULL;
SELECT is(pg_temp.mails(), 2::bigint, 'a hold that ends late has its notice, with the new date');
SELECT is(pg_temp.remind(), '0 0', 'which is the reminder of that day');
SELECT pg_temp.go(40.1);
SELECT is(pg_temp.remind(), '0 0');
SELECT pg_temp.go(46.5);
SELECT is(pg_temp.remind(), '0 2', 'the new date has a reminder a day before, whether the old one had or not');
SELECT is(pg_temp.remind(), '0 0', 'once');
SELECT is((SELECT string_agg(DISTINCT reclaim.rfc3339(r.scheduled)::text, ' ') FROM reclaim.reminders r, reclaim.customer_customers k, c
  WHERE k.id = reminded AND r.customer_id = reminded AND r.scheduled <> k.tm_deletion_scheduled), NULL, 'of the same freeze');

SELECT * FROM finish();
ROLLBACK;
