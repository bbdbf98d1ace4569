-- admit_batch() as programs of the release before call it during an upgrade: three places a request, Reclaim's own tiers.
CREATE OR REPLACE FUNCTION reclaim.admit(p_keys text[], p_limits integer[], p_windows integer[], p_requests integer[],
  OUT admitted boolean[], OUT counts integer[], OUT leaves_us bigint[], OUT waits_us bigint[])
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
BEGIN
  SELECT b.admitted, b.counts, b.leaves_us, b.waits_us INTO admitted, counts, leaves_us, waits_us
  FROM reclaim.admit_batch(p_keys, p_limits, p_windows, p_requests, 3, 1919247216, NULL) b;
END
$$;
REVOKE ALL ON FUNCTION reclaim.admit FROM PUBLIC;
