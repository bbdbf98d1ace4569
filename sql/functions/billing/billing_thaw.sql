-- Ends the freeze. Charges that were due inside it move by its length.
CREATE OR REPLACE FUNCTION reclaim.billing_thaw(p_account uuid) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_frozen timestamptz;
  v_thawed timestamptz;
BEGIN
  UPDATE reclaim.billing_freezes SET thawed_at = greatest(reclaim.now(), frozen_at)
    WHERE billing_account_id = p_account AND thawed_at IS NULL RETURNING frozen_at, thawed_at INTO v_frozen, v_thawed;
  IF FOUND THEN
    UPDATE reclaim.billing_subscriptions SET next_charge_at = next_charge_at + (v_thawed - v_frozen)
      WHERE billing_account_id = p_account AND status = 'paused' AND next_charge_at >= v_frozen;
  END IF;
  UPDATE reclaim.billing_subscriptions SET status = 'active', attempt_at = next_charge_at, tries = 0,
      tm_update = clock_timestamp()
    WHERE billing_account_id = p_account AND status = 'paused';
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_thaw FROM PUBLIC;
