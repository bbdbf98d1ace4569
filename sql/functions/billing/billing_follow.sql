-- The consequences of a change of an account, in the same transaction: the history of freezes; subscriptions pause, resume
-- or end. Runs as its owner, as billing_settle_holds does.
CREATE OR REPLACE FUNCTION reclaim.billing_follow() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_was boolean := TG_OP = 'UPDATE' AND 'account_frozen' = ANY (OLD.hold_reasons);
  v_is boolean := 'account_frozen' = ANY (NEW.hold_reasons);
BEGIN
  IF NEW.status = 'deleted' THEN
    UPDATE reclaim.billing_subscriptions SET status = 'ended', attempt_at = NULL, tm_update = clock_timestamp(),
        tm_end = clock_timestamp()
      WHERE billing_account_id = NEW.id AND status <> 'ended';
  ELSIF v_is AND NOT v_was THEN
    PERFORM reclaim.billing_freeze(NEW.id, NEW.customer_id);
  ELSIF v_was AND NOT v_is THEN
    PERFORM reclaim.billing_thaw(NEW.id);
  ELSE
    -- The balance grew or a hold was lifted: overdue subscriptions are tried at once.
    UPDATE reclaim.billing_subscriptions SET attempt_at = next_charge_at, tries = 0
      WHERE billing_account_id = NEW.id AND attempt_at IS NOT NULL AND tries > 0;
  END IF;
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_follow FROM PUBLIC;
