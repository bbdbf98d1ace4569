-- For operators and other programs: locks an address for the session, against Reclaim, which takes the same key for
-- one transaction at a time. A session that holds it may take it again, and must release it as often.
-- Not through a transaction pooler: the lock would belong to a session that is not the caller's.
CREATE OR REPLACE FUNCTION reclaim.acquire_cleanup_lock(p_email text) RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_id bigint := reclaim.email_to_lock_id(p_email);
  v_mine boolean := pg_try_advisory_lock(v_id);
BEGIN
  IF v_mine THEN
    RAISE NOTICE 'Acquired cleanup lock for email hash: %', v_id;
  ELSE
    RAISE NOTICE 'Failed to acquire cleanup lock (already held): %', v_id;
  END IF;
  RETURN v_mine;
END
$$;
REVOKE ALL ON FUNCTION reclaim.acquire_cleanup_lock FROM PUBLIC;
