-- Releases what acquire_cleanup_lock took.
CREATE OR REPLACE FUNCTION reclaim.release_cleanup_lock(p_email text) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_id bigint := reclaim.email_to_lock_id(p_email);
  v_was_mine boolean := pg_advisory_unlock(v_id);
BEGIN
  IF v_was_mine THEN
    RAISE NOTICE 'Released cleanup lock for email hash: %', v_id;
  ELSE
    RAISE WARNING 'Failed to release cleanup lock (not held by this session): %', v_id;
  END IF;
  RETURN v_was_mine;
END
$$;
REVOKE ALL ON FUNCTION reclaim.release_cleanup_lock FROM PUBLIC;
