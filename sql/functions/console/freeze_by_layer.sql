-- How many milliseconds after its freeze each layer had it; null: not yet. `events` is when its event was published.
CREATE OR REPLACE FUNCTION reclaim.freeze_by_layer(c reclaim.customer_customers) RETURNS json
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
  IF c.status <> 'frozen' THEN
    RETURN NULL;
  END IF;
  RETURN json_build_object(
    'api_ms', round(extract(epoch FROM c.frozen_api_at - c.tm_deletion_scheduled) * 1000)::bigint,
    'calls_ms', round(extract(epoch FROM c.frozen_calls_at - c.tm_deletion_scheduled) * 1000)::bigint,
    'billing_ms', round(extract(epoch FROM c.frozen_billing_at - c.tm_deletion_scheduled) * 1000)::bigint,
    'events_ms', (SELECT round(extract(epoch FROM e.published_at - e.created_at) * 1000)::bigint FROM reclaim.event_outbox e
      WHERE e.customer_id = c.id AND e.type = 'customer_frozen' ORDER BY e.sequence DESC LIMIT 1));
END
$$;
REVOKE ALL ON FUNCTION reclaim.freeze_by_layer FROM PUBLIC;
