-- Calls, as the switch reports them, so that a frozen customer's can be found and ended.

CREATE TABLE reclaim.call_calls (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  customer_id uuid NOT NULL,
  direction text NOT NULL CHECK (direction IN ('incoming', 'outgoing')),
  source text NOT NULL DEFAULT '',
  destination text NOT NULL DEFAULT '',
  status text NOT NULL DEFAULT 'dialing'
    CHECK (status IN ('dialing', 'ringing', 'progressing', 'terminating', 'canceling', 'hangup')),
  hangup_reason text NOT NULL DEFAULT '',
  -- The dialog at the switch. Null: no dialog at a switch.
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

-- Calls have people's numbers in them, which a trigger empties with the mark. The dialog stays: the call of a
-- customer deleted during it must still be ended at the switch.
INSERT INTO reclaim.cascade_participants (name, kind, table_name, customer_column, soft_delete_column)
  VALUES ('reclaim.calls', 'table', 'reclaim.call_calls', 'customer_id', 'tm_delete');

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA reclaim FROM PUBLIC;
