DELETE FROM reclaim.work_items WHERE kind = 'storage';
DELETE FROM reclaim.cascade_receipts r USING reclaim.cascade_participants p WHERE p.name = r.participant AND p.kind = 'storage';
DELETE FROM reclaim.cascade_participants WHERE kind = 'storage';
UPDATE reclaim.erasures e SET completed_at = clock_timestamp() WHERE completed_at IS NULL AND cleared AND NOT EXISTS (
  SELECT FROM reclaim.cascade_receipts r WHERE r.customer_id = e.customer_id AND r.status NOT IN ('done', 'kept'));
DROP TABLE reclaim.storage_checks;
ALTER TABLE reclaim.cascade_participants
  DROP CONSTRAINT cascade_participants_bucket_check,
  DROP COLUMN bucket,
  DROP COLUMN prefix,
  DROP CONSTRAINT cascade_participants_kind_check,
  ADD CONSTRAINT cascade_participants_kind_check CHECK (kind IN ('table', 'remote'));
