-- Freezes or recovers a customer, for its owner or an administrator: writes the row, the triggers write what follows. Outcomes:
-- done; unchanged; unknown; refused (not possible from its state); by_admin (an administrator froze it, its owner may not
-- recover it); too_often (its owner has frozen it as often as installation.freeze_limit allows; the object is the number of
-- seconds to wait). What changes nothing is written to the audit too.
--
-- An administrator who freezes what its owner has frozen takes the freeze over: the date stays, the owner may not recover it.
CREATE OR REPLACE FUNCTION reclaim.customer_change(p_id uuid, p_change text, p_actor text, p_actor_id uuid, p_correlation_id uuid,
  p_reason text, OUT outcome text, OUT object text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_by_owner boolean := reclaim.freezer(p_actor) = 'owner';
  v_customer reclaim.customer_customers;
  v_told text;
  v_limit integer;
  v_wait integer;
BEGIN
  -- Before the row, so that call set-ups, which take it in share mode, do not starve the change.
  PERFORM pg_advisory_xact_lock(1919247213, reclaim.customer_turn(p_id));
  IF v_by_owner AND p_change = 'freeze' THEN
    v_limit := (SELECT freeze_limit FROM reclaim.installation);
    IF v_limit IS NOT NULL THEN
      SELECT f.seconds INTO v_wait FROM reclaim.customer_freezes(p_id, true, v_limit) f
        WHERE f.count >= v_limit AND EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.id = p_id AND c.status = 'active');
    END IF;
    IF v_wait IS NOT NULL THEN
      INSERT INTO reclaim.customer_log (customer_id, action, actor, actor_id, outcome, correlation_id)
        VALUES (p_id, p_change, p_actor, p_actor_id, 'too_often', p_correlation_id);
      outcome := 'too_often';
      object := v_wait;
      RETURN;
    END IF;
  END IF;
  PERFORM reclaim.change_by(p_actor, p_actor_id, p_correlation_id, p_reason);
  IF p_change = 'freeze' THEN
    PERFORM reclaim.customer_make(p_id);
  END IF;
  -- Twice: a change in plain SQL, which takes no turn, may be committed between the update, which then finds nothing to do, and
  -- the lock.
  FOR v_try IN 1 .. 2 LOOP
    UPDATE reclaim.customer_customers c SET status = t.next FROM reclaim.customer_transitions t
      WHERE c.id = p_id AND t.status = c.status AND t.change = p_change AND t.outcome = 'changes'
        AND NOT (v_by_owner AND p_change = 'recover' AND coalesce(c.frozen_by, '') = 'admin')
      RETURNING c.* INTO v_customer;
    IF FOUND THEN
      outcome := 'done';
      EXIT;
    END IF;
    SELECT * INTO v_customer FROM reclaim.customer_customers c WHERE c.id = p_id FOR UPDATE;
    IF NOT FOUND THEN
      SELECT * INTO v_customer FROM reclaim.implied_customer(p_id);
    END IF;
    outcome := CASE WHEN NOT FOUND THEN 'unknown' ELSE
      (SELECT CASE t.outcome WHEN 'changes' THEN 'by_admin' ELSE t.outcome END FROM reclaim.customer_transitions t
        WHERE t.status = v_customer.status AND t.change = p_change) END;
    EXIT WHEN outcome <> 'by_admin';
  END LOOP;
  IF outcome <> 'done' THEN
    IF outcome = 'unchanged' THEN
      SELECT t.status INTO v_told FROM reclaim.customer_told t WHERE t.customer_id = p_id;
      IF coalesce(v_told, 'active') <> v_customer.status THEN
        PERFORM reclaim.customer_repair(p_id);
      END IF;
      IF NOT v_by_owner AND p_change = 'freeze' AND v_customer.frozen_by <> 'admin' THEN
        UPDATE reclaim.customer_customers c SET frozen_by = 'admin', freeze_reason = nullif(p_reason, '') WHERE c.id = p_id;
      END IF;
      SELECT * INTO v_customer FROM reclaim.customer_customers c WHERE c.id = p_id;
    END IF;
    INSERT INTO reclaim.customer_log (customer_id, action, actor, actor_id, outcome, correlation_id)
      VALUES (p_id, p_change, p_actor, p_actor_id, outcome, p_correlation_id);
  END IF;
  object := CASE WHEN v_by_owner THEN reclaim.customer_object(v_customer) ELSE reclaim.customer_object_for_admin(v_customer) END::text;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_change FROM PUBLIC;
