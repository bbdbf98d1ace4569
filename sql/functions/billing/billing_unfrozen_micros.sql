-- How many microseconds of the time from p_from to p_to an account was not frozen. Freezes may overlap, when the beginning of
-- one was set back.
CREATE OR REPLACE FUNCTION reclaim.billing_unfrozen_micros(p_account uuid, p_from timestamptz, p_to timestamptz) RETURNS numeric
LANGUAGE plpgsql STABLE SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_free interval := '0';
  v_at timestamptz := p_from; -- up to here the time is counted
  v_freeze record;
BEGIN
  FOR v_freeze IN SELECT f.frozen_at, f.thawed_at FROM reclaim.billing_freezes f
      WHERE f.billing_account_id = p_account AND f.frozen_at < p_to AND (f.thawed_at IS NULL OR f.thawed_at > p_from)
      ORDER BY f.frozen_at LOOP
    IF v_freeze.frozen_at > v_at THEN
      v_free := v_free + (v_freeze.frozen_at - v_at);
    END IF;
    v_at := greatest(v_at, least(coalesce(v_freeze.thawed_at, p_to), p_to));
  END LOOP;
  RETURN extract(epoch FROM v_free + (p_to - v_at)) * 1000000;
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_unfrozen_micros FROM PUBLIC;
