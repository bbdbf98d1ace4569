-- A new subscription is tried when its first charge is due, and by the calendar has the day of it.
CREATE OR REPLACE FUNCTION reclaim.billing_subscription_settle() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
BEGIN
  NEW.attempt_at := coalesce(NEW.attempt_at, CASE WHEN NEW.status = 'active' THEN NEW.next_charge_at END);
  IF NEW.period_months IS NOT NULL THEN
    NEW.anchor_day := coalesce(NEW.anchor_day, reclaim.billing_anchor(NEW.next_charge_at));
  END IF;
  RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_subscription_settle FROM PUBLIC;
