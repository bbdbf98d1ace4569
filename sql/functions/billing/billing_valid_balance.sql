-- Whether an account could be charged that much for usage of now; the reason when not is the API's name for it.
CREATE OR REPLACE FUNCTION reclaim.billing_valid_balance(p_account uuid, p_amount bigint, OUT outcome text, OUT object json)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog
AS $$
DECLARE
  v_account reclaim.billing_accounts;
  v_refusal text;
BEGIN
  SELECT * INTO v_account FROM reclaim.billing_accounts a WHERE a.id = p_account;
  outcome := CASE WHEN FOUND THEN 'found' ELSE 'unknown' END;
  v_refusal := reclaim.billing_refusal(v_account, reclaim.now());
  object := json_build_object('valid', v_refusal IS NULL AND v_account.balance_micros >= p_amount, 'reason', CASE
    WHEN v_refusal = 'deleted' THEN 'ACCOUNT_DELETED'
    WHEN v_refusal IS NOT NULL THEN 'ACCOUNT_FROZEN'
    WHEN v_account.balance_micros < p_amount THEN 'BALANCE_TOO_LITTLE' END);
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_valid_balance FROM PUBLIC;
