-- Reclaim's own schema, and the one row that says whose database this is.

REVOKE ALL ON SCHEMA reclaim FROM PUBLIC;

CREATE TABLE reclaim.installation (
  -- A fingerprint of RECLAIM_SECRET_KEY, never the key: an instance with another key refuses to start.
  key_fingerprint text,
  created_at timestamptz NOT NULL DEFAULT now(),
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row)
);
INSERT INTO reclaim.installation DEFAULT VALUES;

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;

-- Whoever works here as this role finds reclaim's tables by their plain names, before those of public.
DO $$
BEGIN
  IF current_setting('search_path') !~ '(^|, *)reclaim(,|$)' THEN
    EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET search_path = reclaim, %s', current_database(),
      current_setting('search_path'));
  END IF;
EXCEPTION WHEN insufficient_privilege THEN
  RAISE NOTICE 'this role may not set its own search_path; write reclaim.rate_limits and so on in full';
END
$$;
