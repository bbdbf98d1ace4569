-- Which of these customers could have a call left that ends with them (reclaim.calls_of): one of their own is live, or was part of
-- a group call.
CREATE OR REPLACE FUNCTION reclaim.customers_with_calls(p_customers uuid[]) RETURNS uuid[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RETURN ARRAY(SELECT DISTINCT c.customer_id FROM reclaim.call_calls c WHERE c.customer_id = ANY (p_customers)
    AND (c.status <> 'hangup' OR c.groupcall_id IS NOT NULL) ORDER BY 1);
END
$$;
REVOKE ALL ON FUNCTION reclaim.customers_with_calls FROM PUBLIC;
