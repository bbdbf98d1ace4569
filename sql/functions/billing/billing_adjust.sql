-- Adds an amount to an account's balance, or takes it off, once per reference. Not usage but a correction, a payment or a
-- refund: it is booked on frozen and held accounts too, and may leave a debt. Outcomes: adjusted, again (it was booked
-- before), differs (that reference was booked with other values), unknown, deleted, out_of_range. The actor is an
-- administrator, or a key of another scope than admin.
CREATE OR REPLACE FUNCTION reclaim.billing_adjust(p_account uuid, p_amount bigint, p_reference text, p_reason text,
  p_actor_id uuid, p_correlation_id uuid, OUT outcome text, OUT object json)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_most CONSTANT numeric := 9007199254740992; -- larger JSON numbers are rounded by programs that read them as doubles
  v_account reclaim.billing_accounts;
  v_made reclaim.billing_adjustments;
  v_actor text;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'adjustments are exact under READ COMMITTED only' USING ERRCODE = 'invalid_transaction_state';
  END IF;
  SELECT * INTO v_account FROM reclaim.billing_accounts a WHERE a.id = p_account FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    outcome := 'unknown';
    RETURN;
  END IF;
  SELECT * INTO v_made FROM reclaim.billing_adjustments b WHERE b.reference = p_reference;
  IF NOT FOUND THEN
    outcome := CASE
      WHEN v_account.status = 'deleted' OR EXISTS (SELECT FROM reclaim.customer_customers c
        WHERE c.id = v_account.customer_id AND c.status = 'deleted') THEN 'deleted'
      WHEN v_account.balance_micros::numeric + p_amount NOT BETWEEN -v_most AND v_most THEN 'out_of_range' END;
    IF outcome IS NOT NULL THEN
      RETURN;
    END IF;
    v_actor := CASE WHEN EXISTS (SELECT FROM reclaim.access_keys k WHERE k.id = p_actor_id AND k.scope <> 'admin')
      THEN 'key' ELSE 'admin' END;
    INSERT INTO reclaim.billing_adjustments
        (billing_account_id, amount_micros, reference, reason, actor, actor_id, balance_after_micros, created_at)
      VALUES (p_account, p_amount, p_reference, p_reason, v_actor, p_actor_id, v_account.balance_micros + p_amount, reclaim.now())
      ON CONFLICT (reference) DO NOTHING RETURNING * INTO v_made;
    IF FOUND THEN
      UPDATE reclaim.billing_accounts SET balance_micros = balance_micros + p_amount WHERE id = p_account;
      INSERT INTO reclaim.customer_log (customer_id, action, actor, actor_id, outcome, correlation_id, detail)
        VALUES (v_account.customer_id, 'adjust_billing_account', v_actor, p_actor_id, 'done', p_correlation_id, p_reason);
      outcome := 'adjusted';
      object := reclaim.billing_adjustment_object(v_made);
      RETURN;
    END IF;
    -- Another transaction has booked this reference to another account.
    SELECT * INTO STRICT v_made FROM reclaim.billing_adjustments b WHERE b.reference = p_reference;
  END IF;
  -- The reason is cleared when the customer is deleted.
  outcome := CASE WHEN v_made.billing_account_id = p_account AND v_made.amount_micros = p_amount
    AND v_made.reason IN (p_reason, '') THEN 'again' ELSE 'differs' END;
  object := reclaim.billing_adjustment_object(v_made);
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_adjust FROM PUBLIC;
