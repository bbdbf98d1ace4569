-- Calls, as the switch tells of them, so that a frozen customer's can be found and ended.

CREATE TABLE reclaim.call_calls (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  customer_id uuid NOT NULL,
  direction text NOT NULL CHECK (direction IN ('incoming', 'outgoing')),
  source text NOT NULL DEFAULT '',
  destination text NOT NULL DEFAULT '',
  status text NOT NULL DEFAULT 'dialing'
    CHECK (status IN ('dialing', 'ringing', 'progressing', 'terminating', 'canceling', 'hangup')),
  hangup_reason text NOT NULL DEFAULT '',
  -- The dialog at the switch. Null: the switch knows nothing of this call.
  sip_call_id text,
  from_tag text,
  to_tag text,
  cseq bigint,
  master_call_id uuid, -- the call that this one is chained to
  confbridge_id uuid,  -- the conference that it is a leg of
  groupcall_id uuid,   -- the group call that it is a part of
  ending_for uuid,     -- the customer whose freeze or deletion ends it: not always its own
  tm_create timestamptz NOT NULL DEFAULT clock_timestamp(),
  tm_update timestamptz,
  tm_progressing timestamptz,
  tm_hangup timestamptz,
  tm_delete timestamptz,
  CONSTRAINT call_hangup_has_its_time CHECK ((status = 'hangup') = (tm_hangup IS NOT NULL))
);

CREATE INDEX call_by_customer ON reclaim.call_calls (customer_id, id);
CREATE INDEX call_live_by_customer ON reclaim.call_calls (customer_id) WHERE status <> 'hangup';
CREATE INDEX call_live_by_master ON reclaim.call_calls (master_call_id)
  WHERE status <> 'hangup' AND master_call_id IS NOT NULL;
CREATE INDEX call_live_by_confbridge ON reclaim.call_calls (confbridge_id)
  WHERE status <> 'hangup' AND confbridge_id IS NOT NULL;
CREATE INDEX call_by_groupcall ON reclaim.call_calls (groupcall_id, tm_create, id) WHERE groupcall_id IS NOT NULL;
CREATE INDEX call_live_by_ending ON reclaim.call_calls (ending_for, id)
  WHERE status <> 'hangup' AND ending_for IS NOT NULL;
-- A switch that asks twice gets the same call. Both ends of a call may be customers, so the customer is part of it.
CREATE UNIQUE INDEX call_by_sip ON reclaim.call_calls
  (sip_call_id, coalesce(from_tag, ''), coalesce(cseq, 0), customer_id, direction) WHERE sip_call_id IS NOT NULL;

-- What is deleted keeps nobody's number.
CREATE FUNCTION reclaim.call_forget() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
BEGIN
  IF NEW.tm_delete IS NOT NULL THEN
    NEW.source := '';
    NEW.destination := '';
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER call_forget BEFORE UPDATE OF tm_delete ON reclaim.call_calls
  FOR EACH ROW EXECUTE FUNCTION reclaim.call_forget();

-- The call object of the API. One expression, so that it becomes part of whatever statement asks for it: a body that has to
-- be planned at every call costs more than the call.
CREATE FUNCTION reclaim.call_object(c reclaim.call_calls) RETURNS json
LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT pg_catalog.json_build_object('id', c.id, 'customer_id', c.customer_id, 'direction', c.direction, 'source', c.source,
    'destination', c.destination, 'status', c.status, 'hangup_reason', c.hangup_reason,
    'sip_call_id', c.sip_call_id, 'from_tag', c.from_tag, 'to_tag', c.to_tag, 'cseq', c.cseq,
    'master_call_id', c.master_call_id, 'confbridge_id', c.confbridge_id, 'groupcall_id', c.groupcall_id,
    'tm_create', reclaim.rfc3339(c.tm_create), 'tm_update', reclaim.rfc3339(c.tm_update),
    'tm_progressing', reclaim.rfc3339(c.tm_progressing), 'tm_hangup', reclaim.rfc3339(c.tm_hangup),
    'tm_delete', reclaim.rfc3339(c.tm_delete))
$$;

-- Who answers for a call beside its own customer: whoever has the calls it is chained to, and whoever began its group
-- call. Their freeze ends it too.
CREATE FUNCTION reclaim.call_others_answering(p_master uuid, p_group uuid) RETURNS SETOF uuid
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  WITH RECURSIVE above(id, customer_id, master_call_id) AS (
      SELECT m.id, m.customer_id, m.master_call_id FROM reclaim.call_calls m WHERE m.id = p_master
    UNION
      SELECT m.id, m.customer_id, m.master_call_id FROM above a JOIN reclaim.call_calls m ON m.id = a.master_call_id)
  SELECT customer_id FROM above
  UNION
  (SELECT customer_id FROM reclaim.call_calls WHERE groupcall_id = p_group ORDER BY tm_create, id LIMIT 1)
$$;

-- Who changes a customer's state waits here, in the order of coming, and call set-ups behind it. At the row alone a
-- customer who calls without pause would keep its own freeze waiting: those who share a row pass who waits for it.
CREATE FUNCTION reclaim.customer_turn(p_customer uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$ SELECT pg_catalog.uuid_hash_extended(p_customer, 0) $$;

-- Call set-up: the customer's row is held in share mode until the call's row is committed, so that a freeze either sees
-- the call or is seen by it. What is read under a lock is read by a statement that begins after the lock was had.
-- Outcomes: created; repeated; frozen or deleted, with when that was asked for; unknown; no_master.
CREATE FUNCTION reclaim.call_begin(p_customer uuid, p_direction text, p_source text, p_destination text,
  p_sip_call_id text, p_from_tag text, p_cseq bigint, p_master uuid, p_confbridge uuid, p_group uuid,
  OUT outcome text, OUT call text, OUT refused_customer uuid, OUT scheduled_us bigint)
LANGUAGE plpgsql
AS $$
DECLARE
  v_scheduled timestamptz;
BEGIN
  refused_customer := p_customer;
  IF p_group IS NOT NULL THEN
    -- Who comes second must see who came first.
    PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.uuid_hash_extended(p_group, 1));
  END IF;
  -- Who may not call anyway is told so without a lock.
  SELECT c.status, c.tm_deletion_scheduled INTO outcome, v_scheduled
    FROM reclaim.customer_customers c WHERE c.id = p_customer;
  IF outcome = 'active' THEN
    PERFORM pg_catalog.pg_advisory_xact_lock_shared(reclaim.customer_turn(p_customer));
    SELECT c.status, c.tm_deletion_scheduled INTO outcome, v_scheduled
      FROM reclaim.customer_customers c WHERE c.id = p_customer FOR SHARE;
  END IF;
  IF outcome = 'active' AND p_master IS NOT NULL AND NOT EXISTS (SELECT FROM reclaim.call_calls WHERE id = p_master) THEN
    outcome := 'no_master';
  END IF;
  IF outcome = 'active' AND (p_master IS NOT NULL OR p_group IS NOT NULL) THEN
    FOR refused_customer, outcome, v_scheduled IN
      SELECT c.id, c.status, c.tm_deletion_scheduled FROM reclaim.customer_customers c
        WHERE c.id IN (SELECT reclaim.call_others_answering(p_master, p_group)) AND c.id <> p_customer ORDER BY c.id FOR SHARE
    LOOP
      EXIT WHEN outcome <> 'active';
    END LOOP;
    outcome := coalesce(outcome, 'active'); -- there was nobody else
  END IF;
  IF outcome = 'active' THEN
    INSERT INTO reclaim.call_calls AS c (customer_id, direction, source, destination, sip_call_id, from_tag, cseq,
        master_call_id, confbridge_id, groupcall_id)
      VALUES (p_customer, p_direction, p_source, p_destination, p_sip_call_id, p_from_tag, p_cseq, p_master, p_confbridge,
        p_group)
      ON CONFLICT DO NOTHING RETURNING 'created', reclaim.call_object(c) INTO outcome, call;
    IF NOT FOUND THEN
      SELECT 'repeated', reclaim.call_object(c) INTO outcome, call FROM reclaim.call_calls c
        WHERE c.sip_call_id = p_sip_call_id AND coalesce(c.from_tag, '') = coalesce(p_from_tag, '')
          AND coalesce(c.cseq, 0) = coalesce(p_cseq, 0) AND c.customer_id = p_customer AND c.direction = p_direction;
    END IF;
  ELSIF outcome IS NULL THEN
    outcome := 'unknown';
  ELSE
    scheduled_us := pg_catalog.date_part('epoch', v_scheduled) * 1000000;
  END IF;
END
$$;

-- Every live call that ends when this customer may not call any more: its own, among them its legs in conferences but
-- nobody else's; those of the group calls that it began; and those chained to any of them.
CREATE FUNCTION reclaim.calls_of(p_customer uuid) RETURNS SETOF uuid
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  WITH RECURSIVE own AS (
      SELECT c.id, c.groupcall_id FROM reclaim.call_calls c WHERE c.customer_id = p_customer AND c.status <> 'hangup'
    UNION -- of a group call it began, its own part may have ended before the others
      SELECT c.id, c.groupcall_id FROM reclaim.call_calls b JOIN reclaim.call_calls c ON c.groupcall_id = b.groupcall_id
        WHERE b.customer_id = p_customer AND b.groupcall_id IS NOT NULL AND c.status <> 'hangup'
          AND p_customer = (SELECT f.customer_id FROM reclaim.call_calls f WHERE f.groupcall_id = b.groupcall_id
                            ORDER BY f.tm_create, f.id LIMIT 1)),
  chained(id) AS (
      SELECT id FROM own
    UNION
      SELECT c.id FROM chained m JOIN reclaim.call_calls c ON c.master_call_id = m.id AND c.status <> 'hangup')
  SELECT id FROM chained
$$;

-- One pass over the calls of a customer that was frozen or deleted: none that is live stays unmarked; those that no
-- switch knows are over. Once nothing is left, the customer says so. Run until then.
CREATE FUNCTION reclaim.calls_end(p_customer uuid, p_has_switch boolean)
RETURNS TABLE (standing text, left_over bigint, marked bigint, seconds double precision)
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_status text;
  v_scheduled timestamptz;
  v_since timestamptz;
  v_marked bigint := 0;
  v_left bigint;
BEGIN
  SELECT c.status, c.tm_deletion_scheduled, coalesce(c.tm_delete, c.tm_deletion_scheduled)
    INTO v_status, v_scheduled, v_since FROM reclaim.customer_customers c WHERE c.id = p_customer;
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
    WHERE c.ending_for = p_customer AND c.status <> 'hangup' AND (c.sip_call_id IS NULL OR NOT p_has_switch);
  SELECT count(*) INTO v_left FROM (SELECT FROM reclaim.call_calls c WHERE c.status <> 'hangup' AND (c.ending_for = p_customer
    OR (v_status IN ('frozen', 'deleted') AND c.customer_id = p_customer)) LIMIT 100000) l;
  IF v_left = 0 AND v_status = 'frozen' THEN
    UPDATE reclaim.customer_customers c SET frozen_calls_at = clock_timestamp()
      WHERE c.id = p_customer AND c.status = 'frozen' AND c.tm_deletion_scheduled = v_scheduled AND c.frozen_calls_at IS NULL;
  END IF;
  RETURN QUERY SELECT v_status, v_left, v_marked, date_part('epoch', clock_timestamp() - v_since);
END
$$;

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA reclaim FROM PUBLIC;
