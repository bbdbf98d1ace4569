-- What is left on the accounts of customers that are about to be deleted, as {customer: micros}, for their event. Accounts that
-- were deleted before do not count; a customer without others is not in it.
CREATE OR REPLACE FUNCTION reclaim.billing_remaining(p_customers uuid[]) RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RETURN (SELECT coalesce(jsonb_object_agg(b.customer_id, b.micros), '{}') FROM (
    SELECT a.customer_id, sum(a.balance_micros) AS micros FROM reclaim.billing_accounts a
    WHERE a.customer_id = ANY (p_customers) AND a.status <> 'deleted' GROUP BY a.customer_id) b);
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_remaining FROM PUBLIC;
