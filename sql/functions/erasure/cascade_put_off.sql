-- Delays a participant that fails for every customer.
CREATE OR REPLACE FUNCTION reclaim.cascade_put_off(p_participant text) RETURNS void
LANGUAGE sql SET search_path = pg_catalog
AS $$
  UPDATE reclaim.cascade_participants SET tries = tries + 1, retry_at = clock_timestamp() + reclaim.pause_after(tries + 1)
    WHERE name = p_participant
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_put_off FROM PUBLIC;
