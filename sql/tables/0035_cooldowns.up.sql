-- Addresses of deleted customers that cannot register again for a while.
CREATE TABLE reclaim.address_cooldowns (
  address_hash text PRIMARY KEY, -- HMAC-SHA-256, in hex, under a key that is not in here
  ends_at timestamptz NOT NULL   -- in the installation's time
);
CREATE INDEX address_cooldowns_ends_at_idx ON reclaim.address_cooldowns (ends_at);
REVOKE ALL ON reclaim.address_cooldowns FROM PUBLIC;

-- RECLAIM_COOLDOWN as the latest start recorded it, for deletions by whatever instance or command; null: off.
ALTER TABLE reclaim.installation ADD COLUMN cooldown interval;
