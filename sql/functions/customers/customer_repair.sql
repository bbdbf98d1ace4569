-- Brings the layers of one customer into agreement with its row, after a change behind the triggers: with the state that they
-- were last told of, it writes what follows from the change; else it sets right what differs. A row that is gone counts as
-- deleted. Says what it did, or null for nothing.
CREATE OR REPLACE FUNCTION reclaim.customer_repair(p_id uuid) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_customer reclaim.customer_customers;
  v_status text;
  v_told reclaim.customer_told;
  v_note reclaim.customer_pending;
  v_actor record := reclaim.change_actor();
BEGIN
  PERFORM pg_advisory_xact_lock(1919247213, reclaim.customer_turn(p_id));
  SELECT * INTO v_customer FROM reclaim.customer_customers c WHERE c.id = p_id FOR UPDATE;
  v_status := CASE WHEN FOUND THEN v_customer.status
    WHEN EXISTS (SELECT FROM reclaim.implied_customer(p_id)) THEN 'active' ELSE 'deleted' END;
  SELECT * INTO v_told FROM reclaim.customer_told t WHERE t.customer_id = p_id;
  IF v_customer.id IS NOT NULL THEN
    PERFORM set_config('reclaim.repairs', 'on', true);
    UPDATE reclaim.customer_customers c SET version = c.version WHERE c.id = p_id RETURNING * INTO v_customer;
    PERFORM set_config('reclaim.repairs', '', true);
  END IF;
  IF coalesce(v_told.status, 'active') = v_status
      AND (v_status <> 'deleted' OR EXISTS (SELECT FROM reclaim.erasures e WHERE e.customer_id = p_id)) THEN
    PERFORM reclaim.billing_follow_customers(CASE v_status WHEN 'frozen' THEN ARRAY[p_id] ELSE '{}' END,
      CASE v_status WHEN 'active' THEN ARRAY[p_id] ELSE '{}' END, CASE v_status WHEN 'deleted' THEN ARRAY[p_id] ELSE '{}' END);
    IF v_status = 'deleted' THEN
      PERFORM reclaim.revoke_keys(ARRAY[p_id]);
    END IF;
    RETURN 'layers';
  END IF;
  v_note.customer_id := p_id;
  v_note.change := CASE v_status WHEN 'frozen' THEN 'freeze' WHEN 'active' THEN 'recover' ELSE 'delete' END;
  v_note.version := greatest(v_customer.version, v_told.version + 1, 2);
  v_note.removed := v_customer.id IS NULL;
  v_note.object := CASE WHEN v_note.removed
    THEN reclaim.customer_object_deleted(p_id, NULL, NULL, NULL, clock_timestamp(), reclaim.now()) END;
  v_actor.kind := CASE v_actor.kind WHEN 'sql' THEN 'operator' ELSE v_actor.kind END;
  v_actor.action := coalesce(v_actor.action, 'repair');
  PERFORM reclaim.customer_consequences(ARRAY[v_note], v_actor);
  RETURN v_note.change;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_repair FROM PUBLIC;
