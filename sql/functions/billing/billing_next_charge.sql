-- A subscription's charge follows the last by a period, and by the time that the account was frozen in between. A freeze
-- in progress moves it when it ends.
CREATE OR REPLACE FUNCTION reclaim.billing_next_charge(p_account uuid, p_last timestamptz, p_seconds bigint) RETURNS timestamptz
LANGUAGE plpgsql STABLE SET search_path = pg_catalog
AS $$
DECLARE
  v_next timestamptz := p_last + make_interval(secs => p_seconds);
  v_freeze reclaim.billing_freezes;
BEGIN
  FOR v_freeze IN SELECT * FROM reclaim.billing_freezes f
      WHERE f.billing_account_id = p_account AND f.frozen_at > p_last AND f.thawed_at IS NOT NULL ORDER BY f.frozen_at LOOP
    EXIT WHEN v_next < v_freeze.frozen_at;
    v_next := v_next + (v_freeze.thawed_at - v_freeze.frozen_at);
  END LOOP;
  RETURN v_next;
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_next_charge FROM PUBLIC;
