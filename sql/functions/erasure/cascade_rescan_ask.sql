-- Has the leader look again at a customer whose erasure is complete, null: at all of them. Returns how many. What tables refused to
-- have emptied is tried once more.
CREATE OR REPLACE FUNCTION reclaim.cascade_rescan_ask(p_customer uuid) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_count bigint;
BEGIN
  UPDATE reclaim.erasure_kept k SET again = true FROM reclaim.erasures e WHERE e.customer_id = k.customer_id AND e.completed_at IS NOT NULL
    AND (p_customer IS NULL OR k.customer_id = p_customer) AND k.reason LIKE 'the table %';
  UPDATE reclaim.erasures SET rescan_at = reclaim.now()
    WHERE completed_at IS NOT NULL AND (p_customer IS NULL OR customer_id = p_customer);
  GET DIAGNOSTICS v_count = ROW_COUNT;
  RETURN v_count;
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_rescan_ask FROM PUBLIC;
