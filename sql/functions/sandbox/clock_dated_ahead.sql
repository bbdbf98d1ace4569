-- What was dated by the moved clock of the sandbox, for people; null: nothing. It would lie in the future if the clock went
-- back, or last too long.
CREATE OR REPLACE FUNCTION reclaim.clock_dated_ahead() RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
  v_real timestamptz := clock_timestamp();
  v_moved timestamptz := (SELECT i.clock_moved_at FROM reclaim.installation i);
BEGIN
  IF EXISTS (SELECT FROM reclaim.customer_log l WHERE l.created_at >= v_moved AND l.outcome = 'done'
        AND l.action IN ('freeze', 'recover', 'delete', 'expire', 'hold', 'unhold', 'repair'))
      OR EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.status <> 'active' AND (c.tm_deletion_scheduled > v_real
        OR c.tm_delete > v_real) OR c.hold_at > v_real)
      OR EXISTS (SELECT FROM reclaim.reminders r WHERE r.created_at > v_real) THEN
    RETURN 'customers were changed';
  ELSIF EXISTS (SELECT FROM reclaim.verification_codes c WHERE c.created_at >= v_moved AND c.expires_at > v_real)
      OR EXISTS (SELECT FROM reclaim.sign_in_codes c WHERE c.created_at >= v_moved AND c.expires_at > v_real) THEN
    RETURN 'codes were mailed';
  ELSIF EXISTS (SELECT FROM reclaim.billing_charges c WHERE c.created_at > v_real OR c.occurred_at > v_real)
      OR EXISTS (SELECT FROM reclaim.billing_adjustments a WHERE a.created_at > v_real)
      OR EXISTS (SELECT FROM reclaim.billing_freezes f WHERE f.frozen_at > v_real OR f.thawed_at > v_real)
      OR EXISTS (SELECT FROM reclaim.billing_accounts a WHERE a.tm_delete > v_real AND NOT reclaim.is_sentinel(a.tm_delete))
      OR EXISTS (SELECT FROM reclaim.billing_subscriptions s WHERE s.tm_create >= v_moved
        OR s.tries > 0 AND s.attempt_at > v_real + reclaim.billing_pause(s.tries)) THEN
    RETURN 'accounts were charged or changed';
  ELSIF EXISTS (SELECT FROM reclaim.erasures e WHERE greatest(e.requested_at, e.completed_at, e.reopened_at) > v_real)
      OR EXISTS (SELECT FROM reclaim.cascade_receipts r WHERE greatest(r.done_at, r.late_at) > v_real) THEN
    RETURN 'erasures went on';
  END IF;
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION reclaim.clock_dated_ahead FROM PUBLIC;
