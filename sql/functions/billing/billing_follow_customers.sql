-- The accounts of customers that were frozen, recovered or deleted, whose rows are locked: no other transaction changes several of
-- these accounts. A hold for another reason stays, and a deleted account stays deleted. What follows from a changed account are triggers on it.
CREATE OR REPLACE FUNCTION reclaim.billing_follow_customers(p_frozen uuid[], p_active uuid[], p_gone uuid[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now timestamptz;
  v_own boolean;
BEGIN
  IF NOT reclaim.sees_all_rows('reclaim.billing_accounts', 'UPDATE') THEN
    RAISE insufficient_privilege USING MESSAGE = 'row-level security hides billing accounts from Reclaim''s role',
      HINT = 'reclaim doctor says which policy is needed.';
  END IF;
  IF p_frozen <> '{}' THEN
    UPDATE reclaim.billing_accounts SET status = 'frozen', hold_reasons = array_append(hold_reasons, 'account_frozen')
      WHERE customer_id = ANY (p_frozen) AND status <> 'deleted' AND NOT 'account_frozen' = ANY (hold_reasons);
  END IF;
  IF p_active <> '{}' THEN
    UPDATE reclaim.billing_accounts SET hold_reasons = array_remove(hold_reasons, 'account_frozen'),
        status = CASE WHEN hold_reasons <@ ARRAY['account_frozen'] THEN 'active' ELSE status END
      WHERE customer_id = ANY (p_active) AND status <> 'deleted' AND 'account_frozen' = ANY (hold_reasons);
  END IF;
  IF p_gone <> '{}' THEN
    v_now := reclaim.now();
    v_own := reclaim.is_own_table('billing_accounts'); -- else clear_columns knows what the name may be
    UPDATE reclaim.billing_accounts SET status = 'deleted', tm_delete = coalesce(tm_delete, v_now), name = CASE WHEN v_own THEN '' ELSE name END
      WHERE customer_id = ANY (p_gone) AND (status <> 'deleted' OR v_own AND name <> '');
    UPDATE reclaim.billing_subscriptions SET reference = NULL WHERE reference IS NOT NULL AND billing_account_id = ANY (ARRAY(
      SELECT id FROM reclaim.billing_accounts WHERE customer_id = ANY (p_gone)));
  END IF;
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_follow_customers FROM PUBLIC;
