-- As erasure_keep, for those of the customers whose owners or members are among p_users. How many rows is not known.
CREATE OR REPLACE FUNCTION reclaim.erasure_keep_of_users(p_customers uuid[], p_users uuid[], p_name text, p_kind text, p_reason text)
RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM reclaim.erasure_keep(ARRAY(SELECT DISTINCT u.customer_id FROM reclaim.erasure_users u
    WHERE u.customer_id = ANY (p_customers) AND u.user_id = ANY (p_users)), p_name, p_kind, p_reason, 0);
END
$$;
REVOKE ALL ON FUNCTION reclaim.erasure_keep_of_users FROM PUBLIC;
