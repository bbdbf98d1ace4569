-- The clock of a sandbox.
BEGIN;
SELECT plan(30);

CREATE TEMP TABLE ms AS SELECT 86400000::bigint AS day, '{604800000,86400000}'::bigint[] AS reminders;
CREATE FUNCTION pg_temp.shift() RETURNS numeric LANGUAGE sql AS $$ SELECT round(extract(epoch FROM clock_shift) / 86400, 2) FROM reclaim.installation $$;
CREATE FUNCTION pg_temp.step(days numeric, reminders bigint[]) RETURNS text LANGUAGE sql
AS $$ SELECT concat_ws(' ', outcome, round(moved_ms / 86400000.0, 2)::float8, queued) FROM reclaim.clock_step((days * 86400000)::bigint, reminders) $$;
-- What is dated ahead after a statement, which is undone.
CREATE FUNCTION pg_temp.after(p_sql text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_what text;
BEGIN
  BEGIN
    EXECUTE p_sql;
    v_what := reclaim.clock_dated_ahead();
    RAISE EXCEPTION 'undone';
  EXCEPTION WHEN raise_exception THEN
    RETURN v_what;
  END;
END
$$;

-- Which installations are sandboxes.
SELECT is(pg_temp.step(1, '{}'), 'not_a_sandbox 0 0', 'the clock of an installation stays where it is');
SELECT is((SELECT outcome FROM reclaim.clock_reset()), 'not_a_sandbox', 'and is not set back either');
SELECT is(reclaim.sandbox_note(false), 'off');
SELECT is(reclaim.sandbox_note(true), 'on', 'one without deleted customers can become a sandbox');
SELECT is(reclaim.sandbox_note(true), 'on');
SELECT is(reclaim.sandbox_note(false), 'off', 'and an installation again while its clock was not moved');
INSERT INTO reclaim.customer_customers (id) VALUES ('20000000-0000-4000-8000-000000000001');
UPDATE reclaim.customer_customers SET status = 'deleted' WHERE id = '20000000-0000-4000-8000-000000000001';
SELECT is(reclaim.sandbox_note(true), 'deleted', 'not where a customer was deleted');
DELETE FROM reclaim.customer_customers WHERE id = '20000000-0000-4000-8000-000000000001';
DELETE FROM reclaim.erasures;
SELECT is(reclaim.sandbox_note(true), 'deleted', 'even if nothing but the note of it is left');
DELETE FROM reclaim.customer_told;
SELECT is(reclaim.sandbox_note(true), 'on');

-- Stops.
UPDATE reclaim.installation SET mails = true, grace = interval '720 hours';
INSERT INTO reclaim.customer_customers (id, status) VALUES ('20000000-0000-4000-8000-000000000002', 'frozen'),
  ('20000000-0000-4000-8000-000000000003', 'active');
INSERT INTO reclaim.billing_accounts (id, customer_id, balance_micros) VALUES
  ('30000000-0000-4000-8000-000000000003', '20000000-0000-4000-8000-000000000003', 1000000);
SELECT is(pg_temp.step(0.5, (SELECT reminders FROM ms)), 'moved 0.5 0', 'without a reminder on the way there is no stop');
SELECT is(pg_temp.step(5, '{}'), 'moved 5 0');
SELECT is(pg_temp.shift(), 5.5, 'each step begins where the last one ended');
SELECT is(reclaim.sandbox_note(false), 'moved', 'a sandbox whose clock was moved stays one');
SELECT is(pg_temp.step(3651, '{}'), 'too_far 0 0', 'there is an end');

-- What is dated ahead.
SELECT is(reclaim.clock_dated_ahead(), NULL, 'moving the clock alone dates nothing');
SELECT is(pg_temp.after(format(q, '20000000-0000-4000-8000-00000000000' || n)), what, q) FROM (VALUES
  (3, 'UPDATE reclaim.customer_customers SET status = ''frozen'' WHERE id = %L', 'customers were changed'),
  (2, 'UPDATE reclaim.customer_customers SET status = ''active'' WHERE id = %L', 'customers were changed'),
  (2, 'UPDATE reclaim.customer_customers SET status = ''deleted'' WHERE id = %L', 'customers were changed'),
  (3, 'UPDATE reclaim.customer_customers SET hold_at = reclaim.now(), hold_reason = ''a case'' WHERE id = %L', 'customers were changed'),
  (3, 'UPDATE reclaim.customer_customers SET name = ''Other'' WHERE id = %L', NULL),
  (3, 'INSERT INTO reclaim.verification_codes (email_hash, user_id, code_hash, code_salt, expires_at, log_id, created_at)
    VALUES (''x'', %L, '''', '''', reclaim.now() + interval ''5 minutes'', 1, clock_timestamp())', 'codes were mailed'),
  (3, 'INSERT INTO reclaim.verification_codes (email_hash, user_id, code_hash, code_salt, expires_at, log_id, created_at)
    VALUES (''x'', %L, '''', '''', now() + interval ''5 minutes'', 1, now() - interval ''1 minute'')', NULL),
  (3, 'INSERT INTO reclaim.sign_in_codes (email_hash, user_id, code_hash, code_salt, expires_at)
    VALUES (''x'', %L, '''', '''', reclaim.now() + interval ''5 minutes'')', 'codes were mailed')) AS c (n, q, what);
SELECT is(pg_temp.after(format(q, '30000000-0000-4000-8000-000000000003')), 'accounts were charged or changed', q) FROM (VALUES
  ('SELECT reclaim.billing_charge(%L, 1, ''one'', NULL)'),
  ('SELECT reclaim.billing_subscribe(%L, 1, 86400, NULL, ''sub'')'),
  ('UPDATE reclaim.billing_accounts SET status = ''deleted'' WHERE id = %L')) AS c (q);

-- Set back.
INSERT INTO reclaim.reminders (customer_id, scheduled, before_ms)
  SELECT id, tm_deletion_scheduled, 86400000 FROM reclaim.customer_customers WHERE status = 'frozen';
SELECT is((SELECT outcome FROM reclaim.clock_reset()), 'reset', 'it is set back while nothing is dated ahead');
SELECT is(pg_temp.shift(), 0.00);
SELECT is_empty('SELECT FROM reclaim.reminders', 'and reminders of days that have not come are sent again');

-- The way past both reminders to the deletion.
SELECT is((WITH RECURSIVE way AS (SELECT 31::numeric AS days, NULL::text AS step, 0 AS n
    UNION ALL SELECT days - split_part(next, ' ', 2)::numeric, next, n + 1 FROM (
      SELECT way.*, pg_temp.step(days, (SELECT reminders FROM ms)) AS next FROM way WHERE days > 0.001 AND n < 9) w)
  SELECT string_agg(step, ', ' ORDER BY n) FROM way), 'moved 23.5 1, moved 6 1, moved 1.5 0',
  'it stops for each reminder, within half a day of its time');

SELECT * FROM finish();
ROLLBACK;
