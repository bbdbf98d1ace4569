-- A frozen account has a reason, an account with a reason is frozen, a new account of a frozen customer is frozen, and one of
-- a deleted customer, whether its row is still there or not, is deleted. A program that sets only the status to active lifts every hold but account_frozen, which ends with the customer's freeze.
--
-- Runs as its owner: the table may belong to a team whose programs have no rights in this schema.
CREATE OR REPLACE FUNCTION reclaim.billing_settle_holds() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_before text := NEW.status;
  v_customer text;
BEGIN
  NEW.hold_reasons := coalesce(NEW.hold_reasons, '{}');
  IF NEW.status = 'deleted' THEN
    RETURN NEW;
  END IF;
  IF TG_OP = 'INSERT' THEN
    -- Waits for a freeze in progress, and delays one that begins now.
    SELECT c.status INTO v_customer FROM reclaim.customer_customers c WHERE c.id = NEW.customer_id FOR SHARE;
    IF NOT FOUND AND reclaim.users_are_customers() AND reclaim.may_lock_users() THEN
      PERFORM FROM auth.users u WHERE u.id = NEW.customer_id FOR SHARE;
      SELECT c.status INTO v_customer FROM reclaim.customer_customers c WHERE c.id = NEW.customer_id FOR SHARE;
    END IF;
    IF v_customer = 'deleted' OR NOT FOUND AND reclaim.erasure_note_late(NEW.customer_id) THEN
      NEW.status := 'deleted';
      NEW.tm_delete := reclaim.now();
      IF reclaim.is_own_table('billing_accounts') THEN
        NEW.name := '';
      ELSIF v_customer = 'deleted' THEN
        PERFORM reclaim.erasure_note_late(NEW.customer_id); -- what the team's table takes is for the leader to find out
      END IF;
      RETURN NEW;
    ELSIF v_customer = 'frozen' AND NOT 'account_frozen' = ANY (NEW.hold_reasons) THEN
      NEW.hold_reasons := array_append(NEW.hold_reasons, 'account_frozen');
    END IF;
  ELSIF NEW.status = 'frozen' AND NEW.hold_reasons = '{}' AND OLD.hold_reasons <> '{}' THEN
    NEW.status := 'active';
  ELSIF NEW.status = 'active' AND OLD.status = 'frozen' AND NEW.hold_reasons = OLD.hold_reasons THEN
    NEW.hold_reasons := CASE WHEN 'account_frozen' = ANY (OLD.hold_reasons) THEN ARRAY['account_frozen'] ELSE '{}' END;
  END IF;
  IF NEW.status = 'frozen' AND NEW.hold_reasons = '{}' THEN
    NEW.hold_reasons := ARRAY['held'];
  ELSIF NEW.status = 'active' AND NEW.hold_reasons <> '{}' THEN
    NEW.status := 'frozen';
  END IF;
  IF TG_OP = 'UPDATE' AND NEW.status <> v_before THEN
    NEW.tm_update := clock_timestamp();
  END IF;
  RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_settle_holds FROM PUBLIC;
