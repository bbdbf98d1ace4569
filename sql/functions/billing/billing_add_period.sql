-- When the period ends that begins at p_from. Months are those of the calendar in UTC, whatever the session's time zone: on
-- the anchored day, or the last of a month that is shorter.
CREATE OR REPLACE FUNCTION reclaim.billing_add_period(s reclaim.billing_subscriptions, p_from timestamptz) RETURNS timestamptz
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog
AS $$
DECLARE
  v_from timestamp := p_from AT TIME ZONE 'UTC';
  v_month timestamp; -- its first day
  v_days integer; -- in it
BEGIN
  IF s.period_months IS NULL THEN
    RETURN p_from + make_interval(secs => s.period_seconds);
  END IF;
  v_month := date_trunc('month', v_from) + make_interval(months => s.period_months);
  v_days := extract(day FROM v_month + interval '1 month' - interval '1 day');
  RETURN (v_month + make_interval(days => least(s.anchor_day, v_days) - 1) + v_from::time) AT TIME ZONE 'UTC';
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_add_period FROM PUBLIC;
