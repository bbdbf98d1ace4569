-- Call set-up: the customer's row is held in share mode until the call's row is committed, so that a freeze either sees
-- the call or is seen by it; of a user that is a customer without a row, the user's. What a lock protects is read by a statement that begins after the lock was granted.
-- Outcomes: created; repeated; frozen or deleted, with when that was asked for; unknown; no_master; no_switch, when it names
-- one that is not recorded; which_switch, when it names none of several. Older programs do not give p_switch.
CREATE OR REPLACE FUNCTION reclaim.call_begin(p_customer uuid, p_direction text, p_source text, p_destination text,
  p_sip_call_id text, p_from_tag text, p_cseq bigint, p_master uuid, p_confbridge uuid, p_group uuid,
  p_switch text DEFAULT NULL, OUT outcome text, OUT call text, OUT refused_customer uuid, OUT scheduled_us bigint)
LANGUAGE plpgsql
AS $$
DECLARE
  v_scheduled timestamptz;
  v_users boolean := reclaim.users_are_customers();
  v_switch text;
  v_switches bigint;
BEGIN
  refused_customer := p_customer;
  IF p_group IS NOT NULL THEN
    -- The second leg of a group must see the first.
    PERFORM pg_catalog.pg_advisory_xact_lock(1919247215, pg_catalog.uuid_hash(p_group));
  END IF;
  -- A customer that may not call is refused without taking a lock.
  SELECT c.status, c.tm_deletion_scheduled INTO outcome, v_scheduled
    FROM reclaim.customer_customers c WHERE c.id = p_customer;
  IF EXISTS (SELECT FROM reclaim.erased_before b WHERE b.id = p_customer) THEN
    outcome := 'deleted'; -- before the database was restored
  END IF;
  IF outcome = 'active' OR outcome IS NULL AND v_users AND EXISTS (SELECT FROM reclaim.implied_customer(p_customer)) THEN
    PERFORM pg_catalog.pg_advisory_xact_lock_shared(1919247213, reclaim.customer_turn(p_customer));
    IF outcome IS NULL THEN
      PERFORM FROM auth.users u WHERE u.id = p_customer FOR SHARE;
    END IF;
    SELECT c.status, c.tm_deletion_scheduled INTO outcome, v_scheduled
      FROM reclaim.customer_customers c WHERE c.id = p_customer FOR SHARE;
    IF NOT FOUND THEN
      SELECT i.status INTO outcome FROM reclaim.implied_customer(p_customer) i;
    ELSIF outcome = 'active' AND v_users
        AND EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.id = p_customer AND c.owner_user_id = c.id)
        AND reclaim.user_has_left(p_customer) THEN
      outcome := 'deleted';
    END IF;
  END IF;
  IF outcome = 'active' AND p_master IS NOT NULL AND NOT EXISTS (SELECT FROM reclaim.call_calls WHERE id = p_master) THEN
    outcome := 'no_master';
  END IF;
  IF outcome = 'active' AND (p_master IS NOT NULL OR p_group IS NOT NULL) THEN
    IF v_users THEN
      PERFORM FROM auth.users u WHERE u.id = ANY (ARRAY(SELECT reclaim.call_others_answering(p_master, p_group))) AND u.id <> p_customer
        AND NOT EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.id = u.id) ORDER BY u.id FOR SHARE;
    END IF;
    FOR refused_customer, outcome, v_scheduled IN
      SELECT c.id, c.status, c.tm_deletion_scheduled FROM reclaim.customer_customers c
        WHERE c.id IN (SELECT reclaim.call_others_answering(p_master, p_group)) AND c.id <> p_customer ORDER BY c.id FOR SHARE
    LOOP
      EXIT WHEN outcome <> 'active';
    END LOOP;
    outcome := coalesce(outcome, 'active'); -- no other customer is involved
  END IF;
  IF outcome = 'active' AND (p_switch IS NOT NULL OR p_sip_call_id IS NOT NULL) THEN
    SELECT pg_catalog.count(*), pg_catalog.min(s.name) INTO v_switches, v_switch FROM reclaim.switches s
      WHERE p_switch IS NULL OR s.name = p_switch;
    IF p_switch IS NOT NULL AND v_switches = 0 THEN
      outcome := 'no_switch';
    ELSIF v_switches > 1 THEN
      outcome := 'which_switch';
    END IF;
  END IF;
  IF outcome = 'active' THEN
    INSERT INTO reclaim.call_calls AS c (customer_id, direction, source, destination, sip_call_id, from_tag, cseq,
        master_call_id, confbridge_id, groupcall_id, switch)
      VALUES (p_customer, p_direction, p_source, p_destination, p_sip_call_id, p_from_tag, p_cseq, p_master, p_confbridge,
        p_group, v_switch)
      ON CONFLICT DO NOTHING RETURNING 'created', reclaim.call_object(c) INTO outcome, call;
    IF NOT FOUND THEN
      SELECT 'repeated', reclaim.call_object(c) INTO outcome, call FROM reclaim.call_calls c
        WHERE c.sip_call_id = p_sip_call_id AND coalesce(c.from_tag, '') = coalesce(p_from_tag, '')
          AND coalesce(c.cseq, 0) = coalesce(p_cseq, 0) AND c.customer_id = p_customer AND c.direction = p_direction
          AND coalesce(c.switch, '') = coalesce(v_switch, '');
    END IF;
  ELSIF outcome IS NULL THEN
    outcome := 'unknown';
  ELSE
    scheduled_us := pg_catalog.date_part('epoch', v_scheduled) * 1000000;
  END IF;
END
$$;
REVOKE ALL ON FUNCTION reclaim.call_begin FROM PUBLIC;
