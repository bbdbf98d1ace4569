-- The account object of the API.
CREATE OR REPLACE FUNCTION reclaim.billing_account_object(a reclaim.billing_accounts) RETURNS json
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT row_to_json(o) FROM (
    SELECT a.id, a.customer_id, coalesce(a.name, '') AS name, a.status, a.hold_reasons, a.balance_micros,
      (SELECT reclaim.rfc3339(f.frozen_at) FROM reclaim.billing_freezes f
       WHERE f.billing_account_id = a.id AND f.thawed_at IS NULL) AS frozen_at,
      reclaim.rfc3339(a.tm_create) AS tm_create, reclaim.rfc3339(a.tm_update) AS tm_update,
      reclaim.rfc3339(a.tm_delete) AS tm_delete) AS o
$$;
REVOKE ALL ON FUNCTION reclaim.billing_account_object FROM PUBLIC;
