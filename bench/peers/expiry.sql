-- Deletes every customer whose grace is over, with plain statements over whole tables: the work of
-- src/customers/expiry.c and src/erasure/eraser.c, which use batches and wait for locks. Measured by bench/expiry.js, which names the
-- tables and what else to clear in them.
\set ON_ERROR_STOP on
SET search_path = pg_catalog;
SET session_replication_role = replica; -- the statements below are what the triggers do
BEGIN;
CREATE TEMPORARY TABLE gone ON COMMIT DROP AS
  SELECT id, owner_user_id FROM reclaim.customer_customers
  WHERE status = 'frozen' AND hold_at IS NULL AND deletion_effective_at <= clock_timestamp() FOR UPDATE;
ANALYZE gone;
UPDATE reclaim.event_outbox o SET payload = payload || jsonb_build_object('name', 'deleted_user_' || customer_id,
    'email', 'deleted_' || customer_id || '@removed.invalid', 'detail', '', 'phone_number', '', 'address', '',
    'webhook_method', '', 'webhook_uri', '')
  FROM gone WHERE o.customer_id = gone.id;
UPDATE reclaim.customer_log l SET detail = '' FROM gone WHERE l.customer_id = gone.id AND l.detail <> '';
UPDATE :customers c SET name = 'deleted_user_' || c.id, detail = '',
    email = 'deleted_' || c.id || '@removed.invalid', phone_number = '', address = '', webhook_method = '',
    webhook_uri = '', status = 'deleted', tm_delete = clock_timestamp(), deletion_effective_at = NULL, frozen_by = NULL,
    frozen_api_at = NULL, frozen_calls_at = NULL, frozen_billing_at = NULL, version = version + 1, tm_update = clock_timestamp(),
    changed_xid = pg_current_xact_id() :clear
  FROM gone WHERE c.id = gone.id;
INSERT INTO reclaim.event_outbox (sequence, type, customer_id, payload)
  SELECT c.version, 'customer_deleted', c.id, reclaim.customer_object(c)::jsonb
  FROM reclaim.customer_customers c JOIN gone ON gone.id = c.id;
INSERT INTO reclaim.customer_log (customer_id, action, actor, outcome) SELECT id, 'expire', 'system', 'done' FROM gone;
UPDATE reclaim.customer_told t SET status = 'deleted', version = c.version FROM reclaim.customer_customers c JOIN gone ON gone.id = c.id
  WHERE t.customer_id = gone.id;
UPDATE reclaim.access_keys k SET revoked_at = coalesce(revoked_at, clock_timestamp()), name = '' FROM gone WHERE k.customer_id = gone.id;
UPDATE :accounts b SET status = 'deleted', tm_delete = coalesce(tm_delete, clock_timestamp()), name = '' :clear_account
  FROM gone WHERE b.customer_id = gone.id;
DELETE FROM reclaim.reminders r USING gone WHERE r.customer_id = gone.id;
INSERT INTO reclaim.erasure_users (customer_id, user_id) SELECT id, owner_user_id FROM gone WHERE owner_user_id IS NOT NULL;
DELETE FROM auth.users u USING gone WHERE u.id = gone.owner_user_id;
INSERT INTO reclaim.cascade_receipts (customer_id, participant)
  SELECT gone.id, p.name FROM gone CROSS JOIN reclaim.cascade_participants p;
INSERT INTO reclaim.erasures (customer_id) SELECT id FROM gone;
COMMIT;

BEGIN;
WITH page AS (DELETE FROM public.service_contact t USING reclaim.erasures e WHERE t.customer_id = e.customer_id RETURNING t.customer_id),
  sums AS (SELECT customer_id, count(*) AS rows FROM page GROUP BY 1)
UPDATE reclaim.cascade_receipts r SET rows = sums.rows, status = 'done', tries = 1, first_tried_at = clock_timestamp(),
    last_tried_at = clock_timestamp(), done_at = clock_timestamp()
  FROM sums WHERE r.customer_id = sums.customer_id AND r.participant = 'contact';
WITH page AS (UPDATE public.service_tag t SET tm_delete = clock_timestamp(), note = '' FROM reclaim.erasures e
    WHERE t.customer_id = e.customer_id AND t.tm_delete IS NULL RETURNING t.customer_id),
  sums AS (SELECT customer_id, count(*) AS rows FROM page GROUP BY 1)
UPDATE reclaim.cascade_receipts r SET rows = sums.rows, status = 'done', tries = 1, first_tried_at = clock_timestamp(),
    last_tried_at = clock_timestamp(), done_at = clock_timestamp()
  FROM sums WHERE r.customer_id = sums.customer_id AND r.participant = 'tag';
UPDATE reclaim.erasures e SET completed_at = clock_timestamp(), rescan_at = clock_timestamp() + interval '1 hour' WHERE NOT EXISTS (
  SELECT FROM reclaim.cascade_receipts r WHERE r.customer_id = e.customer_id AND r.status <> 'done');
COMMIT;
