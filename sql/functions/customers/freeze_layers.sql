-- How many milliseconds after a freeze each layer had it; null: not yet. Without settings, so that it is inlined.
CREATE OR REPLACE FUNCTION reclaim.freeze_layers(p_frozen timestamptz, p_api timestamptz, p_calls timestamptz, p_billing timestamptz)
  RETURNS jsonb LANGUAGE sql STABLE
AS $$
  SELECT pg_catalog.jsonb_build_object(
    'api_ms', pg_catalog.round(pg_catalog.extract('epoch', p_api OPERATOR(pg_catalog.-) p_frozen) OPERATOR(pg_catalog.*) 1000)::bigint,
    'calls_ms', pg_catalog.round(pg_catalog.extract('epoch', p_calls OPERATOR(pg_catalog.-) p_frozen) OPERATOR(pg_catalog.*) 1000)::bigint,
    'billing_ms', pg_catalog.round(pg_catalog.extract('epoch', p_billing OPERATOR(pg_catalog.-) p_frozen) OPERATOR(pg_catalog.*) 1000)::bigint)
$$;
REVOKE ALL ON FUNCTION reclaim.freeze_layers FROM PUBLIC;
