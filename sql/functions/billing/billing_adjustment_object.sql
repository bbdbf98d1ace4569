-- The adjustment object of the API.
CREATE OR REPLACE FUNCTION reclaim.billing_adjustment_object(b reclaim.billing_adjustments) RETURNS json
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT row_to_json(o) FROM (
    SELECT b.id, b.billing_account_id, b.amount_micros, b.reference, b.reason, b.actor, b.actor_id, b.balance_after_micros,
      reclaim.rfc3339(b.created_at) AS created_at) AS o
$$;
REVOKE ALL ON FUNCTION reclaim.billing_adjustment_object FROM PUBLIC;
