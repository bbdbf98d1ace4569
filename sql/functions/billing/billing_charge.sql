-- Charges an amount to an account, once per reference. Usage from p_started to p_occurred is charged in proportion to its
-- part outside freezes, rounded down. Outcomes: charged, again (it was charged before), differs (that reference was charged
-- with other values), unknown, future, backwards, deleted, held, frozen, was_frozen, too_little.
--
-- The row is locked by a statement of its own: under READ COMMITTED those after it see what its last holder committed,
-- and the clock is read only then. Plans are kept for the session: one made while the tables were small must not scan
-- large ones.
CREATE OR REPLACE FUNCTION reclaim.billing_charge(p_account uuid, p_amount bigint, p_reference text, p_occurred timestamptz,
  p_subscription uuid DEFAULT NULL, p_started timestamptz DEFAULT NULL, OUT outcome text, OUT object json)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_account reclaim.billing_accounts;
  v_charge reclaim.billing_charges;
  v_now timestamptz;
  v_occurred timestamptz;
  v_charged bigint := p_amount;
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
  v_occurred := coalesce(p_occurred, v_now);

  SELECT * INTO v_charge FROM reclaim.billing_charges c WHERE c.reference = p_reference;
  IF NOT FOUND THEN
    outcome := CASE WHEN v_occurred > v_now THEN 'future' WHEN p_started > v_occurred THEN 'backwards'
      ELSE reclaim.billing_refusal(v_account, v_occurred, p_started) END;
    IF outcome IS NULL AND p_started < v_occurred THEN
      v_charged := reclaim.billing_part(p_account, p_amount, p_started, v_occurred);
    END IF;
    IF outcome IS NULL AND v_charged > 0 AND v_account.balance_micros < v_charged THEN
      outcome := 'too_little';
    END IF;
    IF outcome IS NOT NULL THEN
      RETURN;
    END IF;
    INSERT INTO reclaim.billing_charges (billing_account_id, amount_micros, charged_micros, reference, started_at, occurred_at,
        subscription_id, balance_after_micros, created_at)
      VALUES (p_account, p_amount, v_charged, p_reference, p_started, v_occurred, p_subscription,
        v_account.balance_micros - v_charged, v_now)
      ON CONFLICT (reference) DO NOTHING RETURNING * INTO v_charge;
    IF FOUND THEN
      IF v_charged <> 0 THEN
        UPDATE reclaim.billing_accounts SET balance_micros = balance_micros - v_charged WHERE id = p_account;
      END IF;
      outcome := 'charged';
      object := reclaim.billing_charge_object(v_charge);
      RETURN;
    END IF;
    -- Another transaction has charged this reference to another account.
    SELECT * INTO STRICT v_charge FROM reclaim.billing_charges c WHERE c.reference = p_reference;
  END IF;
  -- By what was asked for: what was taken of it is not compared.
  outcome := CASE WHEN v_charge.billing_account_id = p_account AND v_charge.amount_micros = p_amount
    AND v_charge.started_at IS NOT DISTINCT FROM p_started AND coalesce(p_occurred = v_charge.occurred_at, true)
    THEN 'again' ELSE 'differs' END;
  object := reclaim.billing_charge_object(v_charge);
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_charge FROM PUBLIC;
