-- Delays the charges that are due from an account which failed.
CREATE OR REPLACE FUNCTION reclaim.billing_put_off(p_account uuid, p_trouble text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
BEGIN
  UPDATE reclaim.billing_subscriptions SET tries = tries + 1, trouble = p_trouble,
      attempt_at = reclaim.now() + reclaim.billing_pause(tries + 1)
    WHERE billing_account_id = p_account AND attempt_at <= (SELECT reclaim.now());
EXCEPTION WHEN lock_not_available THEN
  NULL; -- the session that holds the account holds these too; they stay due
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_put_off FROM PUBLIC;
