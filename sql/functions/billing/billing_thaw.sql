-- Ends the freeze. Charges that were due inside it move by its length, and calendar periods then count from the new day.
-- In UTC: in a session's time zone a difference of days is longer or shorter by an hour where its clocks change.
CREATE OR REPLACE FUNCTION reclaim.billing_thaw(p_account uuid) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
DECLARE
  v_frozen timestamptz;
  v_thawed timestamptz;
BEGIN
  UPDATE reclaim.billing_freezes SET thawed_at = greatest(reclaim.now(), frozen_at)
    WHERE billing_account_id = p_account AND thawed_at IS NULL RETURNING frozen_at, thawed_at INTO v_frozen, v_thawed;
  IF v_thawed > v_frozen THEN
    UPDATE reclaim.billing_subscriptions SET next_charge_at = next_charge_at + (v_thawed - v_frozen),
        anchor_day = CASE WHEN period_months IS NOT NULL THEN reclaim.billing_anchor(next_charge_at + (v_thawed - v_frozen)) END
      WHERE billing_account_id = p_account AND status = 'paused' AND next_charge_at >= v_frozen;
  END IF;
  UPDATE reclaim.billing_subscriptions SET status = 'active', attempt_at = next_charge_at, tries = 0,
      tm_update = clock_timestamp()
    WHERE billing_account_id = p_account AND status = 'paused';
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_thaw FROM PUBLIC;
