-- Charges one subscription for each period that has begun, and returns how many were charged, and whether one was refused.
-- The account is locked.
CREATE OR REPLACE FUNCTION reclaim.billing_charge_periods(s reclaim.billing_subscriptions, OUT charged integer, OUT refused boolean)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
DECLARE
  v_outcome text;
  v_open timestamptz;
BEGIN
  charged := 0;
  refused := false;
  SELECT f.frozen_at INTO v_open FROM reclaim.billing_freezes f
    WHERE f.billing_account_id = s.billing_account_id AND f.thawed_at IS NULL;
  -- The rest is charged in a further call, after other subscriptions.
  WHILE NOT refused AND charged < 50 AND s.next_charge_at <= reclaim.now()
      AND (v_open IS NULL OR s.next_charge_at < v_open) LOOP
    SELECT c.outcome INTO v_outcome FROM reclaim.billing_charge(s.billing_account_id, s.amount_micros,
      format('sub:%s:%s', s.id, reclaim.rfc3339(s.next_charge_at)), s.next_charge_at, s.id) c;
    IF v_outcome IN ('charged', 'again') THEN
      charged := charged + 1;
      s.tries := 0;
      s := reclaim.billing_next_charge(s);
    ELSIF v_outcome = 'was_frozen' THEN -- only if the history was rewritten: such a period is free
      s.next_charge_at := reclaim.billing_add_period(s, s.next_charge_at);
    ELSE
      refused := true;
      s.tries := s.tries + 1;
    END IF;
  END LOOP;
  UPDATE reclaim.billing_subscriptions SET next_charge_at = s.next_charge_at, anchor_day = s.anchor_day, tries = s.tries,
      trouble = CASE WHEN refused THEN v_outcome END,
      attempt_at = CASE WHEN refused THEN reclaim.now() + reclaim.billing_pause(s.tries)
                        WHEN v_open IS NULL OR s.next_charge_at < v_open THEN s.next_charge_at END
    WHERE id = s.id;
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_charge_periods FROM PUBLIC;
