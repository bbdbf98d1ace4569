-- The part of an amount for usage from p_from to p_to, which is later, that lies outside freezes; rounded down.
CREATE OR REPLACE FUNCTION reclaim.billing_part(p_account uuid, p_amount bigint, p_from timestamptz, p_to timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog
AS $$
DECLARE
  v_whole numeric := extract(epoch FROM p_to - p_from) * 1000000;
  v_free numeric := reclaim.billing_unfrozen_micros(p_account, p_from, p_to);
BEGIN
  -- div() is exact, where the quotient of numerics is rounded.
  RETURN div(p_amount * v_free, v_whole)::bigint;
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_part FROM PUBLIC;
