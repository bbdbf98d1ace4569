DELETE FROM reclaim.cascade_participants WHERE id_of <> 'customer' OR soft_delete_column IS NULL AND scrub_columns <> '{}';
DELETE FROM reclaim.cascade_receipts WHERE participant = 'reclaim.charges' OR status = 'kept';
UPDATE reclaim.erasures e SET completed_at = clock_timestamp() WHERE completed_at IS NULL AND cleared AND NOT EXISTS (
  SELECT FROM reclaim.cascade_receipts r WHERE r.customer_id = e.customer_id AND r.status <> 'done');
DROP TABLE reclaim.erasure_kept, reclaim.erasure_users;
DROP INDEX reclaim.erasures_rescan_idx;
ALTER TABLE reclaim.erasures DROP COLUMN reopened_at, DROP COLUMN rescan_at;
ALTER TABLE reclaim.cascade_receipts DROP COLUMN late_rows, DROP COLUMN late_at,
  DROP CONSTRAINT cascade_receipts_status_check,
  ADD CONSTRAINT cascade_receipts_status_check CHECK (status IN ('pending', 'done', 'failed'));
ALTER TABLE reclaim.cascade_participants DROP COLUMN label, DROP COLUMN id_of;
ALTER TABLE reclaim.installation DROP COLUMN ownership;
