-- The rows and logins of these customers are cleared: those whose receipts are all there are complete.
CREATE OR REPLACE FUNCTION reclaim.erasure_cleared(p_customers uuid[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
BEGIN
  UPDATE reclaim.erasures SET cleared = true WHERE customer_id = ANY (p_customers) AND NOT cleared;
  IF FOUND THEN
    PERFORM reclaim.erasures_settle(p_customers);
  END IF;
END
$$;
REVOKE ALL ON FUNCTION reclaim.erasure_cleared FROM PUBLIC;
