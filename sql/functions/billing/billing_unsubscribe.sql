-- Ends a subscription; repeated, it changes nothing.
CREATE OR REPLACE FUNCTION reclaim.billing_unsubscribe(p_subscription uuid, OUT outcome text, OUT object json)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
DECLARE
  v_subscription reclaim.billing_subscriptions;
BEGIN
  -- The account first, as everywhere: a charge under way is waited for.
  PERFORM FROM reclaim.billing_accounts a WHERE a.id = (
    SELECT s.billing_account_id FROM reclaim.billing_subscriptions s WHERE s.id = p_subscription) FOR NO KEY UPDATE;
  UPDATE reclaim.billing_subscriptions s SET status = 'ended', attempt_at = NULL, tm_update = clock_timestamp(),
      tm_end = clock_timestamp()
    WHERE s.id = p_subscription AND s.status <> 'ended';
  SELECT * INTO v_subscription FROM reclaim.billing_subscriptions s WHERE s.id = p_subscription;
  outcome := CASE WHEN FOUND THEN 'found' ELSE 'unsubscribed' END;
  object := CASE WHEN outcome = 'found' THEN reclaim.billing_subscription_object(v_subscription) END;
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_unsubscribe FROM PUBLIC;
