-- Sets the sandbox's clock back to the real time. outcome: reset, or not_a_sandbox, dated_ahead with what was. Reminders that
-- are not due in real time count as not sent.
CREATE OR REPLACE FUNCTION reclaim.clock_reset(OUT outcome text, OUT what text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET jit = off
  SET lock_timeout = '5s'
AS $$
DECLARE
  v_sandbox boolean;
BEGIN
  SELECT i.sandbox INTO v_sandbox FROM reclaim.installation i FOR UPDATE;
  IF NOT v_sandbox THEN
    outcome := 'not_a_sandbox';
    RETURN;
  END IF;
  -- What others have dated by the clock as it was is committed before the check, and nothing until the clock is back.
  LOCK TABLE reclaim.customer_customers, reclaim.billing_accounts, reclaim.verification_codes, reclaim.sign_in_codes,
    reclaim.erasures IN EXCLUSIVE MODE;
  what := reclaim.clock_dated_ahead();
  IF what IS NOT NULL THEN
    outcome := 'dated_ahead';
    RETURN;
  END IF;
  DELETE FROM reclaim.reminders r USING reclaim.customer_customers c WHERE c.id = r.customer_id
    AND c.deletion_effective_at - r.before_ms * interval '1 millisecond' > clock_timestamp() AND r.before_ms > 0;
  UPDATE reclaim.installation SET clock_shift = '0', clock_moved_at = NULL,
      expired_until = least(expired_until, clock_timestamp());
  outcome := 'reset';
  PERFORM pg_notify('reclaim_customers', '');
END
$$;
REVOKE ALL ON FUNCTION reclaim.clock_reset FROM PUBLIC;
