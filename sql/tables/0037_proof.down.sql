UPDATE reclaim.erasures SET completed_at = settled_at, rescan_at = coalesce(rescan_at, settled_at + interval '1 hour')
  WHERE completed_at IS NULL AND settled_at IS NOT NULL;
DROP INDEX reclaim.erasures_settled_idx;
ALTER TABLE reclaim.erasures DROP COLUMN settled_at, DROP COLUMN certificate_id, DROP COLUMN address_hash, DROP COLUMN link_hash;
DROP TABLE reclaim.sealed_leaves, reclaim.sealed_heads, reclaim.sealed_sources, reclaim.erasure_certificates, reclaim.receipt_facts;
ALTER TABLE reclaim.installation DROP COLUMN proof_generation;
DELETE FROM reclaim.erasure_kept WHERE kind = 'table' AND starts_with(reason, 'its rows are marked as deleted and stay');
