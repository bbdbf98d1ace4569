-- The customer object of the API and of events.
CREATE OR REPLACE FUNCTION reclaim.customer_object(c reclaim.customer_customers) RETURNS json
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog
AS $$
  SELECT CASE WHEN c.status = 'frozen'
    THEN pg_catalog."left"(plain::text, -1) || ',"freeze":' || pg_catalog.row_to_json(layers)::text || '}'
    ELSE plain::text END::json
  FROM (SELECT pg_catalog.row_to_json(fields) AS plain FROM (
      SELECT c.id, coalesce(c.name, '') AS name, coalesce(c.detail, '') AS detail, coalesce(c.email, '') AS email,
        coalesce(c.phone_number, '') AS phone_number, coalesce(c.address, '') AS address,
        coalesce(c.webhook_method, '') AS webhook_method, coalesce(c.webhook_uri, '') AS webhook_uri,
        c.billing_account_id, c.status, reclaim.rfc3339(c.tm_deletion_scheduled) AS tm_deletion_scheduled,
        reclaim.rfc3339(c.tm_create) AS tm_create, reclaim.rfc3339(c.tm_update) AS tm_update,
        reclaim.rfc3339(c.tm_delete) AS tm_delete) AS fields) AS object,
    (SELECT reclaim.rfc3339(c.frozen_api_at) AS api, reclaim.rfc3339(c.frozen_calls_at) AS calls,
        reclaim.rfc3339(c.frozen_billing_at) AS billing) AS layers
$$;
REVOKE ALL ON FUNCTION reclaim.customer_object FROM PUBLIC;
