ALTER TABLE reclaim.erasures DROP COLUMN journal_hash, DROP COLUMN journaled, DROP COLUMN keyed_address;
DROP TABLE reclaim.erased_before;
DROP TABLE reclaim.journal_lines;
ALTER TABLE reclaim.installation DROP COLUMN restored_at, DROP COLUMN journal_from;
