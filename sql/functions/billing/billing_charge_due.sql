-- Charges what is due, up to p_most subscriptions, oldest first. Each account is a step of its own: one that is locked, or
-- fails, stays due and does not delay the others.
CREATE OR REPLACE FUNCTION reclaim.billing_charge_due(p_most integer, OUT seen integer, OUT charged bigint, OUT refused bigint,
  OUT failed bigint)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog SET enable_seqscan = off SET jit = off SET lock_timeout = '100ms'
AS $$
DECLARE
  v_now timestamptz := reclaim.now(); -- a variable, so that the index is asked for what is due
  v_due record;
  v_id uuid;
  v_subscription reclaim.billing_subscriptions;
  v_done record;
  v_charged bigint;
  v_refused bigint;
BEGIN
  seen := 0;
  charged := 0;
  refused := 0;
  failed := 0;
  FOR v_due IN
      SELECT d.billing_account_id AS account, array_agg(d.id ORDER BY d.attempt_at, d.id) AS ids FROM (
        SELECT s.billing_account_id, s.id, s.attempt_at FROM reclaim.billing_subscriptions s
        WHERE s.attempt_at <= v_now ORDER BY s.attempt_at LIMIT p_most) d
      GROUP BY d.billing_account_id ORDER BY d.billing_account_id LOOP
    seen := seen + cardinality(v_due.ids);
    v_charged := 0;
    v_refused := 0;
    BEGIN
      PERFORM FROM reclaim.billing_accounts a WHERE a.id = v_due.account FOR NO KEY UPDATE;
      FOREACH v_id IN ARRAY v_due.ids LOOP
        SELECT * INTO v_subscription FROM reclaim.billing_subscriptions s WHERE s.id = v_id AND s.attempt_at <= v_now FOR UPDATE;
        CONTINUE WHEN NOT FOUND; -- charged, paused or ended meanwhile
        v_done := reclaim.billing_charge_periods(v_subscription);
        v_charged := v_charged + v_done.charged;
        v_refused := v_refused + v_done.refused::integer;
      END LOOP;
    EXCEPTION WHEN OTHERS THEN
      failed := failed + 1;
      PERFORM reclaim.billing_put_off(v_due.account, SQLSTATE);
      CONTINUE;
    END;
    charged := charged + v_charged;
    refused := refused + v_refused;
  END LOOP;
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_charge_due FROM PUBLIC;
