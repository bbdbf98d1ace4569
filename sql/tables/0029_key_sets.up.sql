-- The public keys that were last read from RECLAIM_JWKS_URL: they count while it cannot be read, after a restart too.
CREATE TABLE reclaim.key_sets (
  url_hash text PRIMARY KEY, -- SHA-256 of the URL, in hex
  keys text NOT NULL,        -- the JSON Web Key Set as it was read
  read_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
REVOKE ALL ON reclaim.key_sets FROM PUBLIC;
