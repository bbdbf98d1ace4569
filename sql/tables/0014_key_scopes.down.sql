-- Keys of programs mean nothing to the release before. One that has an end would live on there without it.
DELETE FROM reclaim.access_keys WHERE customer_id IS NULL;
DROP INDEX reclaim.access_keys_scoped_idx;
UPDATE reclaim.access_keys SET revoked_at = least(expires_at, clock_timestamp()) WHERE expires_at IS NOT NULL AND revoked_at IS NULL;
ALTER TABLE reclaim.access_keys
  DROP CONSTRAINT access_keys_customer_check,
  DROP COLUMN scope,
  DROP COLUMN expires_at,
  ALTER COLUMN customer_id SET NOT NULL;
