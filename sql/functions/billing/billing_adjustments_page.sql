-- A page of an account's adjustments in the order of their time, {"items":[…],"next":…}, behind the one with the id p_after. The
-- outcome is found or unknown.
CREATE OR REPLACE FUNCTION reclaim.billing_adjustments_page(p_account uuid, p_after uuid, p_limit bigint, OUT outcome text,
  OUT object json)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_last timestamptz := '-infinity';
  v_ids uuid[];
BEGIN
  IF NOT EXISTS (SELECT FROM reclaim.billing_accounts a WHERE a.id = p_account) THEN
    outcome := 'unknown';
    RETURN;
  END IF;
  IF p_after IS NOT NULL THEN
    SELECT b.created_at INTO v_last FROM reclaim.billing_adjustments b WHERE b.id = p_after;
  END IF;
  -- One more than the limit shows whether there is a next page.
  v_ids := ARRAY(SELECT b.id FROM reclaim.billing_adjustments b
    WHERE b.billing_account_id = p_account AND b.created_at >= v_last AND (p_after IS NULL OR (b.created_at, b.id) > (v_last, p_after))
    ORDER BY b.created_at, b.id LIMIT p_limit + 1);
  outcome := 'found';
  object := json_build_object(
    'items', (SELECT coalesce(json_agg(reclaim.billing_adjustment_object(b) ORDER BY b.created_at, b.id), '[]')
      FROM reclaim.billing_adjustments b WHERE b.id = ANY (v_ids[1:p_limit])),
    'next', CASE WHEN cardinality(v_ids) > p_limit THEN v_ids[p_limit] END);
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_adjustments_page FROM PUBLIC;
