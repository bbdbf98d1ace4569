-- Whether a call could be left that ends with this customer (reclaim.calls_of): one of its own is live, or was part of a group
-- call. In plpgsql without SET: asked for every customer of an expiry batch.
CREATE OR REPLACE FUNCTION reclaim.may_have_calls(p_customer uuid) RETURNS boolean
LANGUAGE plpgsql STABLE
AS $$
BEGIN
  RETURN EXISTS (SELECT FROM reclaim.call_calls c WHERE c.customer_id = p_customer
    AND (c.status <> 'hangup' OR c.groupcall_id IS NOT NULL));
END
$$;
REVOKE ALL ON FUNCTION reclaim.may_have_calls FROM PUBLIC;
