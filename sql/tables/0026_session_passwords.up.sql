-- A session ends when its user's password changes: it remembers a digest of the stored hash. Null: it began before this step.
ALTER TABLE reclaim.sessions ADD COLUMN password_digest bytea;
