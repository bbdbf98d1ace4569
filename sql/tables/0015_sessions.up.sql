-- Sessions that /auth/login began, and the codes that sign in without a password.

-- A token with the claim "sid" is good as long as its row is here and has not ended. Real time, not reclaim.now().
CREATE TABLE reclaim.sessions (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  user_id uuid NOT NULL,
  method text NOT NULL CHECK (method IN ('password', 'code')), -- how the user signed in
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz NOT NULL,
  ended_at timestamptz
);
CREATE INDEX sessions_user_id_idx ON reclaim.sessions (user_id);
CREATE INDEX sessions_expires_at_idx ON reclaim.sessions (expires_at);

-- At most one code an address. The code itself follows from the salt, the user and a key that is not in here. Addresses
-- that may not sign in have a row too, whose hash is of no code, so that trying a code costs the same.
CREATE TABLE reclaim.sign_in_codes (
  email_hash text PRIMARY KEY,
  user_id uuid,
  code_hash bytea NOT NULL,
  code_salt bytea NOT NULL,
  expires_at timestamptz NOT NULL,
  tries integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX sign_in_codes_expires_at_idx ON reclaim.sign_in_codes (expires_at);

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA reclaim FROM PUBLIC;
