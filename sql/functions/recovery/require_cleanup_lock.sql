-- For Reclaim itself: takes the lock until the transaction ends, or raises an error, so that no statement sent behind
-- this one runs, or waits for tables, without the lock.
CREATE OR REPLACE FUNCTION reclaim.require_cleanup_lock(p_email text) RETURNS void
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog
AS $$
BEGIN
  IF NOT pg_try_advisory_xact_lock(reclaim.email_to_lock_id(p_email)) THEN
    RAISE EXCEPTION 'another transaction works on this address' USING ERRCODE = 'lock_not_available';
  END IF;
END
$$;
REVOKE ALL ON FUNCTION reclaim.require_cleanup_lock FROM PUBLIC;
