ALTER TABLE reclaim.sessions DROP COLUMN password_digest;
