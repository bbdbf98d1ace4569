-- A subscription's charge follows the last, at s.next_charge_at, by a period, and by the time that the account was frozen in
-- between; calendar periods then count from the new day. A freeze in progress moves it when it ends. Returns the
-- subscription with its next charge.
CREATE OR REPLACE FUNCTION reclaim.billing_next_charge(s reclaim.billing_subscriptions) RETURNS reclaim.billing_subscriptions
LANGUAGE plpgsql STABLE SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
DECLARE
  v_last timestamptz := s.next_charge_at;
  v_freeze reclaim.billing_freezes;
BEGIN
  s.next_charge_at := reclaim.billing_add_period(s, v_last);
  FOR v_freeze IN SELECT * FROM reclaim.billing_freezes f
      WHERE f.billing_account_id = s.billing_account_id AND f.frozen_at > v_last AND f.thawed_at > f.frozen_at
      ORDER BY f.frozen_at LOOP
    EXIT WHEN s.next_charge_at < v_freeze.frozen_at;
    s.next_charge_at := s.next_charge_at + (v_freeze.thawed_at - v_freeze.frozen_at);
    IF s.period_months IS NOT NULL THEN
      s.anchor_day := reclaim.billing_anchor(s.next_charge_at);
    END IF;
  END LOOP;
  RETURN s;
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_next_charge FROM PUBLIC;
