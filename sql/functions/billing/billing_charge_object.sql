-- The charge object of the API.
CREATE OR REPLACE FUNCTION reclaim.billing_charge_object(c reclaim.billing_charges) RETURNS json
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT row_to_json(o) FROM (
    SELECT c.id, c.billing_account_id, c.amount_micros, coalesce(c.charged_micros, c.amount_micros) AS charged_micros, c.reference,
      reclaim.rfc3339(c.started_at) AS started_at, reclaim.rfc3339(c.occurred_at) AS occurred_at,
      c.subscription_id, c.balance_after_micros, reclaim.rfc3339(c.created_at) AS created_at) AS o
$$;
REVOKE ALL ON FUNCTION reclaim.billing_charge_object FROM PUBLIC;
