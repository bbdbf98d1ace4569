-- One pass over the calls of a customer that was frozen or deleted: marks every live call, and ends those that have no
-- dialog at a switch. When no call is left it sets the customer's frozen_calls_at. Called until then. A customer without
-- a row was deleted with it, unless it is a user that is one without.
--
-- A dialog is at the switch that its call names, else at the one recorded first. Programs older than reclaim.switches say
-- in p_has_switch whether they have a switch: one that has none must leave the calls to others.
CREATE OR REPLACE FUNCTION reclaim.calls_end(p_customer uuid, p_has_switch boolean DEFAULT NULL)
RETURNS TABLE (standing text, left_over bigint, marked bigint, seconds double precision)
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_status text;
  v_scheduled timestamptz;
  v_since timestamptz;
  v_marked bigint := 0;
  v_left bigint;
  v_first_switch text := (SELECT s.name FROM reclaim.switches s ORDER BY s.created_at, s.name LIMIT 1);
BEGIN
  IF NOT p_has_switch AND v_first_switch IS NOT NULL THEN
    RAISE EXCEPTION 'calls are at a switch that this instance does not know' USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  SELECT c.status, c.tm_deletion_scheduled, coalesce(c.tm_delete, c.tm_deletion_scheduled)
    INTO v_status, v_scheduled, v_since FROM reclaim.customer_customers c WHERE c.id = p_customer;
  IF NOT FOUND THEN
    v_status := CASE WHEN EXISTS (SELECT FROM reclaim.implied_customer(p_customer)) THEN 'active' ELSE 'deleted' END;
  END IF;
  IF v_status IN ('frozen', 'deleted') THEN
    UPDATE reclaim.call_calls c SET ending_for = p_customer, tm_update = clock_timestamp(),
        status = CASE WHEN c.status IN ('dialing', 'ringing') THEN 'canceling'
                      WHEN c.status = 'progressing' THEN 'terminating' ELSE c.status END,
        hangup_reason = CASE WHEN c.hangup_reason <> '' THEN c.hangup_reason ELSE 'account_' || v_status END
      WHERE c.id IN (SELECT reclaim.calls_of(p_customer)) AND c.status <> 'hangup'
        AND (c.ending_for IS NULL OR c.status NOT IN ('terminating', 'canceling'));
    GET DIAGNOSTICS v_marked = ROW_COUNT;
  END IF;
  UPDATE reclaim.call_calls c SET status = 'hangup', tm_hangup = clock_timestamp(), tm_update = clock_timestamp()
    WHERE c.ending_for = p_customer AND c.status <> 'hangup' AND (c.sip_call_id IS NULL OR NOT (coalesce(p_has_switch, false)
      OR EXISTS (SELECT FROM reclaim.switches s WHERE s.name = coalesce(c.switch, v_first_switch))));
  SELECT count(*) INTO v_left FROM (SELECT FROM reclaim.call_calls c WHERE c.status <> 'hangup' AND (c.ending_for = p_customer
    OR (v_status IN ('frozen', 'deleted') AND c.customer_id = p_customer)) LIMIT 100000) l;
  IF v_left = 0 AND v_status = 'frozen' THEN
    UPDATE reclaim.customer_customers c SET frozen_calls_at = reclaim.now()
      WHERE c.id = p_customer AND c.status = 'frozen' AND c.tm_deletion_scheduled = v_scheduled AND c.frozen_calls_at IS NULL;
  END IF;
  RETURN QUERY SELECT v_status, v_left, v_marked, date_part('epoch', reclaim.now() - v_since);
END
$$;
REVOKE ALL ON FUNCTION reclaim.calls_end FROM PUBLIC;
