-- The customer object of the API and of events; what only administrators see is in customer_object_for_admin. While a legal hold
-- lasts the date of the deletion is never in the past: the earliest that it can be is a week from now.
--
-- In plpgsql without SET, so that neither is planned again for every customer of a statement.
CREATE OR REPLACE FUNCTION reclaim.customer_object(c reclaim.customer_customers) RETURNS json
LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
DECLARE
  v_plain text;
  v_now timestamptz;
BEGIN
  -- One comparison for all of them: hardly any customer has such a text.
  IF greatest(pg_catalog.octet_length(c.name), pg_catalog.octet_length(c.detail), pg_catalog.octet_length(c.email),
      pg_catalog.octet_length(c.phone_number), pg_catalog.octet_length(c.address), pg_catalog.octet_length(c.webhook_method),
      pg_catalog.octet_length(c.webhook_uri)) > 65536 THEN
    c.name := reclaim.shown_text(c.name);
    c.detail := reclaim.shown_text(c.detail);
    c.email := reclaim.shown_text(c.email);
    c.phone_number := reclaim.shown_text(c.phone_number);
    c.address := reclaim.shown_text(c.address);
    c.webhook_method := reclaim.shown_text(c.webhook_method);
    c.webhook_uri := reclaim.shown_text(c.webhook_uri);
  END IF;
  SELECT pg_catalog.row_to_json(fields)::text INTO v_plain FROM (
    SELECT c.id, coalesce(c.name, '') AS name, coalesce(c.detail, '') AS detail, coalesce(c.email, '') AS email,
      coalesce(c.phone_number, '') AS phone_number, coalesce(c.address, '') AS address,
      coalesce(c.webhook_method, '') AS webhook_method, coalesce(c.webhook_uri, '') AS webhook_uri,
      c.billing_account_id, c.status, reclaim.rfc3339(c.tm_deletion_scheduled) AS tm_deletion_scheduled,
      reclaim.rfc3339(c.tm_create) AS tm_create, reclaim.rfc3339(c.tm_update) AS tm_update,
      reclaim.rfc3339(c.tm_delete) AS tm_delete) AS fields;
  IF c.status <> 'frozen' THEN
    RETURN v_plain::json;
  END IF;
  v_now := reclaim.now();
  RETURN pg_catalog.format('%s,"deletion_effective_at":%s,"frozen_by":%s,"freeze":{"api":%s,"calls":%s,"billing":%s}}',
    pg_catalog."left"(v_plain, -1),
    coalesce(pg_catalog.to_json(reclaim.rfc3339(CASE WHEN c.hold_at IS NOT NULL AND c.deletion_effective_at <= v_now
      THEN v_now + interval '7 days' ELSE c.deletion_effective_at END))::text, 'null'),
    coalesce(pg_catalog.to_json(c.frozen_by)::text, 'null'),
    coalesce(pg_catalog.to_json(reclaim.rfc3339(c.frozen_api_at))::text, 'null'),
    coalesce(pg_catalog.to_json(reclaim.rfc3339(c.frozen_calls_at))::text, 'null'),
    coalesce(pg_catalog.to_json(reclaim.rfc3339(c.frozen_billing_at))::text, 'null'))::json;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_object FROM PUBLIC;
