-- Has the leader look again at a customer, soon; false when it has no erasure.
CREATE OR REPLACE FUNCTION reclaim.erasure_note_late(p_customer uuid) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM reclaim.erasures e WHERE e.customer_id = p_customer) THEN
    RETURN false;
  END IF;
  INSERT INTO reclaim.erasure_late (customer_id) VALUES (p_customer);
  RETURN true;
END
$$;
REVOKE ALL ON FUNCTION reclaim.erasure_note_late FROM PUBLIC;
