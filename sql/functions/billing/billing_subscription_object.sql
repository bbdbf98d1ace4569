-- The subscription object of the API.
CREATE OR REPLACE FUNCTION reclaim.billing_subscription_object(s reclaim.billing_subscriptions) RETURNS json
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT row_to_json(o) FROM (
    SELECT s.id, s.billing_account_id, s.amount_micros, s.period_seconds,
      CASE s.period_months WHEN 1 THEN 'month' WHEN 12 THEN 'year' ELSE s.period_seconds || 's' END AS period, s.anchor_day, s.status,
      reclaim.rfc3339(s.next_charge_at) AS next_charge_at, s.reference, s.trouble,
      reclaim.rfc3339(s.tm_create) AS tm_create, reclaim.rfc3339(s.tm_update) AS tm_update,
      reclaim.rfc3339(s.tm_end) AS tm_end) AS o
$$;
REVOKE ALL ON FUNCTION reclaim.billing_subscription_object FROM PUBLIC;
