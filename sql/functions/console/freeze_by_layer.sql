-- How many milliseconds after its last freeze each layer had it; null: not yet. `events` is when its event was published.
CREATE OR REPLACE FUNCTION reclaim.freeze_by_layer(c reclaim.customer_customers) RETURNS json
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
  RETURN CASE WHEN c.status = 'frozen' THEN reclaim.freeze_layers(c.tm_deletion_scheduled, c.frozen_api_at, c.frozen_calls_at, c.frozen_billing_at)
      ELSE (SELECT t.last_freeze FROM reclaim.customer_told t WHERE t.customer_id = c.id) END
    || jsonb_build_object('events_ms', (SELECT round(extract(epoch FROM e.published_at - e.created_at) * 1000)::bigint
      FROM reclaim.event_outbox e WHERE e.customer_id = c.id AND e.type = 'customer_frozen' ORDER BY e.epoch DESC, e.sequence DESC LIMIT 1));
END
$$;
REVOKE ALL ON FUNCTION reclaim.freeze_by_layer FROM PUBLIC;
