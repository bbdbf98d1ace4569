-- Charges due before the freeze are still owed; those after it wait.
CREATE OR REPLACE FUNCTION reclaim.billing_freeze(p_account uuid, p_customer uuid) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_frozen timestamptz;
BEGIN
  SELECT c.tm_deletion_scheduled INTO v_frozen FROM reclaim.customer_customers c
    WHERE c.id = p_customer AND c.status = 'frozen';
  v_frozen := coalesce(v_frozen, reclaim.now());
  INSERT INTO reclaim.billing_freezes (billing_account_id, frozen_at) VALUES (p_account, v_frozen)
    ON CONFLICT (billing_account_id) WHERE thawed_at IS NULL DO NOTHING;
  UPDATE reclaim.billing_subscriptions SET status = 'paused', tm_update = clock_timestamp(),
      attempt_at = CASE WHEN next_charge_at < v_frozen THEN attempt_at END
    WHERE billing_account_id = p_account AND status = 'active';
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_freeze FROM PUBLIC;
