-- Ends the keys of deleted customers. Their names may be personal.
CREATE OR REPLACE FUNCTION reclaim.revoke_keys(p_customers uuid[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  UPDATE reclaim.access_keys SET revoked_at = coalesce(revoked_at, clock_timestamp()), name = ''
    WHERE customer_id = ANY (p_customers) AND (revoked_at IS NULL OR name <> '');
END
$$;
REVOKE ALL ON FUNCTION reclaim.revoke_keys FROM PUBLIC;
