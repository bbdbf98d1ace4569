-- Limits that cannot be used against one person.

-- A shorter window that Reclaim's settings ask for, and since when: the recorded one must not shrink while rows that were
-- counted under it live.
ALTER TABLE reclaim.rate_limit_tiers
  ADD COLUMN next_seconds integer CHECK (next_seconds > 0),
  ADD COLUMN next_since timestamptz;

-- Wrong tries of a code by client network: an object of keyed hashes and counts, at most as many as the code has tries. In
-- the code's row, so that they are counted with it, replaced with it and gone with it.
ALTER TABLE reclaim.verification_codes ADD COLUMN network_tries jsonb NOT NULL DEFAULT '{}';
ALTER TABLE reclaim.sign_in_codes ADD COLUMN network_tries jsonb NOT NULL DEFAULT '{}';

-- From which networks somebody signed in to which address within 30 days: one keyed hash of both.
CREATE TABLE reclaim.sign_in_networks (
  pair_hash text PRIMARY KEY,
  signed_in_at timestamptz NOT NULL
);
CREATE INDEX sign_in_networks_signed_in_at_idx ON reclaim.sign_in_networks (signed_in_at);
REVOKE ALL ON reclaim.sign_in_networks FROM PUBLIC;
