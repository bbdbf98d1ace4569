-- Charges an account every p_seconds, or every p_months of the calendar. The outcome is made, again, differs, unknown, deleted, held, frozen or past.
CREATE OR REPLACE FUNCTION reclaim.billing_subscribe(p_account uuid, p_amount bigint, p_seconds bigint, p_first timestamptz,
  p_reference text, p_months smallint DEFAULT NULL, OUT outcome text, OUT object json)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
DECLARE
  v_account reclaim.billing_accounts;
  v_made reclaim.billing_subscriptions;
  v_first timestamptz;
  v_freeze reclaim.billing_freezes;
BEGIN
  SELECT * INTO v_account FROM reclaim.billing_accounts a WHERE a.id = p_account FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    outcome := 'unknown';
    RETURN;
  END IF;
  SELECT * INTO v_made FROM reclaim.billing_subscriptions s WHERE s.reference = p_reference;
  IF NOT FOUND THEN
    v_first := coalesce(p_first, reclaim.now());
    outcome := reclaim.billing_refusal(v_account, reclaim.now());
    -- Each missed period is a charge of its own.
    IF outcome IS NULL AND v_first + make_interval(secs => 1000.0 * coalesce(p_seconds, 2419200 * p_months)) < reclaim.now() THEN
      outcome := 'past';
    END IF;
    IF outcome IS NOT NULL THEN
      RETURN;
    END IF;
    FOR v_freeze IN SELECT * FROM reclaim.billing_freezes f
        WHERE f.billing_account_id = p_account AND f.thawed_at > v_first ORDER BY f.frozen_at LOOP
      IF v_first >= v_freeze.frozen_at AND v_first < v_freeze.thawed_at THEN
        v_first := v_first + (v_freeze.thawed_at - v_freeze.frozen_at);
      END IF;
    END LOOP;
    INSERT INTO reclaim.billing_subscriptions
        (billing_account_id, amount_micros, period_seconds, period_months, next_charge_at, reference, first_charge_at)
      VALUES (p_account, p_amount, p_seconds, p_months, v_first, p_reference, p_first)
      ON CONFLICT (reference) DO NOTHING RETURNING * INTO v_made;
    IF FOUND THEN
      outcome := 'made';
      object := reclaim.billing_subscription_object(v_made);
      RETURN;
    END IF;
    SELECT * INTO STRICT v_made FROM reclaim.billing_subscriptions s WHERE s.reference = p_reference;
  END IF;
  outcome := CASE WHEN (v_made.billing_account_id, v_made.amount_micros, v_made.period_seconds, v_made.period_months, v_made.first_charge_at)
      IS NOT DISTINCT FROM (p_account, p_amount, p_seconds, p_months, p_first) THEN 'again' ELSE 'differs' END;
  object := reclaim.billing_subscription_object(v_made);
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_subscribe FROM PUBLIC;
