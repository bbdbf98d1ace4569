-- What was left to instances with RECLAIM_SWITCH_RPC_URL is for every instance: the switch has an address in the table, or
-- is gone.
CREATE OR REPLACE FUNCTION reclaim.hangup_take_back(p_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
BEGIN
  IF p_name = 'default' THEN
    UPDATE reclaim.work_items w SET kind = 'hangup' WHERE w.kind = 'hangup_by_setting';
  END IF;
END
$$;
REVOKE ALL ON FUNCTION reclaim.hangup_take_back FROM PUBLIC;
