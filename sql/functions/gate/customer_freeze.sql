-- What the refusal of a frozen customer says, as FREEZE_OF_C in src/gate/frozen_customers.h reads it; no row for null and for
-- customers that are not frozen. Volatile: it sees a freeze that was committed after the calling statement began.
CREATE OR REPLACE FUNCTION reclaim.customer_freeze(p_id uuid)
RETURNS TABLE (scheduled_us bigint, effective_us bigint, by_admin boolean, held boolean)
LANGUAGE plpgsql VOLATILE STRICT ROWS 1 SET search_path = pg_catalog
AS $$
BEGIN
  RETURN QUERY SELECT (extract(epoch FROM greatest(least(c.tm_deletion_scheduled, '9999-12-31 00:00+00'), 'epoch')) * 1000000)::bigint,
      (extract(epoch FROM greatest(least(coalesce(c.deletion_effective_at, c.tm_deletion_scheduled
        + (SELECT i.grace FROM reclaim.installation i)), '9999-12-31 00:00+00'), 'epoch')) * 1000000)::bigint,
      coalesce(c.frozen_by = 'admin', false), c.hold_at IS NOT NULL
    FROM reclaim.customer_customers c WHERE c.id = p_id AND c.status = 'frozen';
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_freeze FROM PUBLIC;
