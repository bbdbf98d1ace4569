DROP TABLE reclaim.sign_in_networks;
ALTER TABLE reclaim.sign_in_codes DROP COLUMN network_tries;
ALTER TABLE reclaim.verification_codes DROP COLUMN network_tries;
ALTER TABLE reclaim.rate_limit_tiers DROP COLUMN next_since, DROP COLUMN next_seconds;
