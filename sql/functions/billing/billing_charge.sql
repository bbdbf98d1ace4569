-- Charges an amount to an account, once per reference. Outcomes: charged, again (it was charged before), differs (that
-- reference was charged with other values), unknown, future, deleted, held, frozen, was_frozen, too_little.
--
-- The row is locked by a statement of its own: under READ COMMITTED those after it see what its last holder committed,
-- and the clock is read only then. Plans are kept for the session: one made while the tables were small must not scan
-- large ones.
CREATE OR REPLACE FUNCTION reclaim.billing_charge(p_account uuid, p_amount bigint, p_reference text, p_occurred timestamptz,
  p_subscription uuid DEFAULT NULL, OUT outcome text, OUT object json)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_account reclaim.billing_accounts;
  v_charge reclaim.billing_charges;
  v_now timestamptz;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'charges are exact under READ COMMITTED only' USING ERRCODE = 'invalid_transaction_state';
  END IF;
  SELECT * INTO v_account FROM reclaim.billing_accounts a WHERE a.id = p_account FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    outcome := 'unknown';
    RETURN;
  END IF;
  v_now := reclaim.now();

  SELECT * INTO v_charge FROM reclaim.billing_charges c WHERE c.reference = p_reference;
  IF NOT FOUND THEN
    outcome := CASE WHEN p_occurred > v_now THEN 'future' ELSE
      coalesce(reclaim.billing_refusal(v_account, coalesce(p_occurred, v_now)),
        CASE WHEN v_account.balance_micros < p_amount THEN 'too_little' END) END;
    IF outcome IS NOT NULL THEN
      RETURN;
    END IF;
    INSERT INTO reclaim.billing_charges
        (billing_account_id, amount_micros, reference, occurred_at, subscription_id, balance_after_micros, created_at)
      VALUES (p_account, p_amount, p_reference, coalesce(p_occurred, v_now), p_subscription,
        v_account.balance_micros - p_amount, v_now)
      ON CONFLICT (reference) DO NOTHING RETURNING * INTO v_charge;
    IF FOUND THEN
      UPDATE reclaim.billing_accounts SET balance_micros = balance_micros - p_amount WHERE id = p_account;
      outcome := 'charged';
      object := reclaim.billing_charge_object(v_charge);
      RETURN;
    END IF;
    -- Another transaction has charged this reference to another account.
    SELECT * INTO STRICT v_charge FROM reclaim.billing_charges c WHERE c.reference = p_reference;
  END IF;
  outcome := CASE WHEN v_charge.billing_account_id = p_account AND v_charge.amount_micros = p_amount
    AND coalesce(p_occurred = v_charge.occurred_at, true) THEN 'again' ELSE 'differs' END;
  object := reclaim.billing_charge_object(v_charge);
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_charge FROM PUBLIC;
