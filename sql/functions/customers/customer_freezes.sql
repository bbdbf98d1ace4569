-- How often a customer was frozen in the last 30 days, by whomever, or by itself only; and for how many seconds the oldest of its
-- last p_limit freezes still counts. In the installation's time.
CREATE OR REPLACE FUNCTION reclaim.customer_freezes(p_id uuid, p_own boolean DEFAULT false, p_limit integer DEFAULT 1,
  OUT count integer, OUT seconds integer)
LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
DECLARE
  v_since timestamptz := reclaim.now() - interval '720 hours';
  v_times timestamptz[] := ARRAY(SELECT f.frozen_at FROM reclaim.customer_frozen f WHERE f.customer_id = p_id AND f.frozen_at > v_since
    AND (NOT p_own OR f.by_owner) ORDER BY f.frozen_at DESC);
BEGIN
  count := pg_catalog.cardinality(v_times);
  seconds := greatest(pg_catalog.ceil(extract(epoch FROM v_times[p_limit] - v_since)), 1)::integer;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_freezes FROM PUBLIC;
