-- Why money may not be taken from an account for usage of that instant; null: it may. The account's row must be locked,
-- or the result may be out of date.
CREATE OR REPLACE FUNCTION reclaim.billing_refusal(a reclaim.billing_accounts, p_occurred timestamptz) RETURNS text
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
  END IF;
  RETURN (SELECT CASE WHEN f.thawed_at IS NULL THEN 'frozen' ELSE 'was_frozen' END FROM reclaim.billing_freezes f
    WHERE f.billing_account_id = a.id AND f.frozen_at <= p_occurred AND (f.thawed_at IS NULL OR p_occurred < f.thawed_at)
    ORDER BY f.thawed_at NULLS FIRST LIMIT 1);
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_refusal FROM PUBLIC;
