-- Why money may not be taken from an account for usage of that instant, or from p_started to it; null: it may. Usage with a
-- length is refused when all of it lies inside freezes. The account's row must be locked, or the result may be out of date.
CREATE OR REPLACE FUNCTION reclaim.billing_refusal(a reclaim.billing_accounts, p_occurred timestamptz,
  p_started timestamptz DEFAULT NULL) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
AS $$
BEGIN
  IF a.status = 'deleted' OR a.tm_delete IS NOT NULL THEN
    RETURN 'deleted';
  ELSIF a.status <> 'active' AND NOT a.hold_reasons <@ ARRAY['account_frozen'] THEN
    RETURN 'held';
  ELSIF EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.id = a.customer_id AND c.status = 'deleted') THEN
    RETURN 'deleted'; -- its accounts are erased by the cascade
  ELSIF 'account_frozen' = ANY (a.hold_reasons) AND NOT EXISTS (
      SELECT FROM reclaim.billing_freezes f WHERE f.billing_account_id = a.id AND f.thawed_at IS NULL) THEN
    RETURN 'frozen'; -- without a record since when
  ELSIF p_started < p_occurred THEN
    IF reclaim.billing_unfrozen_micros(a.id, p_started, p_occurred) > 0 THEN
      RETURN NULL;
    END IF;
    RETURN CASE WHEN EXISTS (SELECT FROM reclaim.billing_freezes f WHERE f.billing_account_id = a.id AND f.thawed_at IS NULL
      AND f.frozen_at < p_occurred) THEN 'frozen' ELSE 'was_frozen' END;
  END IF;
  RETURN (SELECT CASE WHEN f.thawed_at IS NULL THEN 'frozen' ELSE 'was_frozen' END FROM reclaim.billing_freezes f
    WHERE f.billing_account_id = a.id AND f.frozen_at <= p_occurred AND (f.thawed_at IS NULL OR p_occurred < f.thawed_at)
    ORDER BY f.thawed_at NULLS FIRST LIMIT 1);
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_refusal FROM PUBLIC;
