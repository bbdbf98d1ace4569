-- Status and time together (billing_settle); its subscriptions end with it (billing_follow). The actor is an administrator,
-- or a key of another scope than admin.
CREATE OR REPLACE FUNCTION reclaim.billing_account_delete(p_account uuid, p_actor_id uuid, p_correlation_id uuid,
  OUT outcome text, OUT object json)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
DECLARE
  v_account reclaim.billing_accounts;
BEGIN
  SELECT * INTO v_account FROM reclaim.billing_accounts a WHERE a.id = p_account FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    outcome := 'unknown';
    RETURN;
  END IF;
  IF v_account.status <> 'deleted' THEN
    UPDATE reclaim.billing_accounts a SET status = 'deleted' WHERE a.id = p_account RETURNING * INTO v_account;
    INSERT INTO reclaim.customer_log (customer_id, action, actor, actor_id, outcome, correlation_id)
      SELECT v_account.customer_id, 'delete_billing_account', CASE WHEN EXISTS (SELECT FROM reclaim.access_keys k
        WHERE k.id = p_actor_id AND k.scope <> 'admin') THEN 'key' ELSE 'admin' END, p_actor_id, 'done', p_correlation_id;
  END IF;
  outcome := 'found';
  object := reclaim.billing_account_object(v_account);
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_account_delete FROM PUBLIC;
