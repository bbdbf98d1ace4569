-- Leaves the calls at the switch of RECLAIM_SWITCH_RPC_URL to an instance that has that setting: queues the customer once
-- more, under a kind that only such instances claim. Once an item, however often that runs. False: every instance has
-- the switch's address now, or it was removed.
CREATE OR REPLACE FUNCTION reclaim.hangup_hand_over(p_item bigint, p_customer uuid) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
BEGIN
  -- A change of the switch waits for this, and then takes the new item back too.
  PERFORM FROM reclaim.switches s WHERE s.name = 'default' AND s.url IS NULL FOR SHARE;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  UPDATE reclaim.work_items w SET payload = w.payload || '{"handed_over": true}'
    WHERE w.id = p_item AND NOT w.payload ? 'handed_over';
  IF FOUND THEN
    INSERT INTO reclaim.work_items (kind, payload)
      VALUES ('hangup_by_setting', jsonb_build_object('customer_id', p_customer));
    PERFORM pg_notify('reclaim_work', '');
  END IF;
  RETURN true;
END
$$;
REVOKE ALL ON FUNCTION reclaim.hangup_hand_over FROM PUBLIC;
