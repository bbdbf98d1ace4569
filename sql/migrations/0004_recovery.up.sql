-- Registration recovery: locks by address, codes that are stored nowhere in clear, and what was done about whom.

-- An address as Reclaim looks it up: white space off both ends, ASCII letters in lower case. The program's own
-- normalisation (src/recovery/email.c) and this one must agree; a test compares them.
CREATE FUNCTION reclaim.normalise_email(p_email text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog
AS $$ SELECT lower(btrim(p_email, E' \t\n\r\f\x0B') COLLATE "C") $$;

-- The first eight bytes of a SHA-256, as PostgreSQL's advisory locks want them.
CREATE FUNCTION reclaim.text_to_lock_id(p_text text) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog
AS $$ SELECT ('x' || encode(substr(sha256(convert_to(p_text, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint $$;

CREATE FUNCTION reclaim.email_to_lock_id(p_email text) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog
AS $$ SELECT reclaim.text_to_lock_id(reclaim.normalise_email(p_email)) $$;

-- The same with a name space, for locks of other kinds.
CREATE FUNCTION reclaim.generate_lock_id(p_namespace text, p_key text) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog
AS $$ SELECT reclaim.text_to_lock_id(p_namespace || ':' || reclaim.normalise_email(p_key)) $$;

-- For operators and other programs: keeps Reclaim, which takes the same key for one transaction at a time, away from an
-- address until it is released or the session ends. A session that holds it gets it again, and must release it as often.
-- Not through a transaction pooler: the lock would belong to a session that is not the caller's.
CREATE FUNCTION reclaim.acquire_cleanup_lock(p_email text) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog
AS $$
DECLARE
  v_id bigint := reclaim.email_to_lock_id(p_email);
  v_mine boolean := pg_try_advisory_lock(v_id);
BEGIN
  IF v_mine THEN
    RAISE NOTICE 'cleanup lock % acquired', v_id;
  ELSE
    RAISE NOTICE 'cleanup lock % is held by another session', v_id;
  END IF;
  RETURN v_mine;
END
$$;

-- For Reclaim itself: the same key until the transaction ends, or an error that ends it at once, so that nothing sent
-- behind this statement runs, or waits for tables, without the lock.
CREATE FUNCTION reclaim.require_cleanup_lock(p_email text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog
AS $$
BEGIN
  IF NOT pg_try_advisory_xact_lock(reclaim.email_to_lock_id(p_email)) THEN
    RAISE EXCEPTION 'another transaction works on this address' USING ERRCODE = 'lock_not_available';
  END IF;
END
$$;

CREATE FUNCTION reclaim.release_cleanup_lock(p_email text) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog
AS $$
DECLARE
  v_id bigint := reclaim.email_to_lock_id(p_email);
  v_was_mine boolean := pg_advisory_unlock(v_id);
BEGIN
  IF v_was_mine THEN
    RAISE NOTICE 'cleanup lock % released', v_id;
  ELSE
    RAISE WARNING 'cleanup lock % was not held by this session', v_id;
  END IF;
  RETURN v_was_mine;
END
$$;

-- What was asked for and what became of it. Addresses and clients are keyed hashes.
CREATE TABLE reclaim.auth_cleanup_log (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  correlation_id uuid NOT NULL,
  email_hash text NOT NULL,
  ip_hash text,
  step text NOT NULL,
  status text NOT NULL CHECK (status IN ('pending', 'completed', 'failed')),
  error_code text,
  orphan_classification text,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX auth_cleanup_log_correlation_id_idx ON reclaim.auth_cleanup_log (correlation_id);
CREATE INDEX auth_cleanup_log_email_hash_idx ON reclaim.auth_cleanup_log (email_hash, created_at);
CREATE INDEX auth_cleanup_log_created_at_idx ON reclaim.auth_cleanup_log (created_at);

-- At most one code an address. The code itself follows from the salt, the user and a key that is not in here.
CREATE TABLE reclaim.verification_codes (
  email_hash text PRIMARY KEY,
  user_id uuid NOT NULL,
  code_hash bytea NOT NULL,
  code_salt bytea NOT NULL,
  expires_at timestamptz NOT NULL,
  tries integer NOT NULL DEFAULT 0,
  log_id bigint NOT NULL, -- of the row that the deletion completes
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX verification_codes_expires_at_idx ON reclaim.verification_codes (expires_at);

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA reclaim FROM PUBLIC;
