-- SIP switches. Which ones there are is a fact of the database, not of an instance: a call at one of them has ended only
-- when that switch says so.
CREATE TABLE reclaim.switches (
  name text PRIMARY KEY CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
  -- Where every instance reaches it. Null: only instances with RECLAIM_SWITCH_RPC_URL know, which may name this machine
  -- or have a password in it.
  url text,
  address text NOT NULL, -- for people: the URL without user, password and query
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz,
  CONSTRAINT switch_has_its_address CHECK (url IS NOT NULL OR name = 'default')
);

-- The switch of the call's dialog. Null: the one that was recorded first.
ALTER TABLE reclaim.call_calls ADD COLUMN switch text;

-- Two switches that a call passes may both ask about it: each has a dialog of its own.
DROP INDEX reclaim.call_by_sip;
CREATE UNIQUE INDEX call_by_sip ON reclaim.call_calls
  (sip_call_id, coalesce(from_tag, ''), coalesce(cseq, 0), customer_id, direction, coalesce(switch, ''))
  WHERE sip_call_id IS NOT NULL;

-- It has one argument more now.
DROP FUNCTION IF EXISTS reclaim.call_begin(uuid, text, text, text, text, text, bigint, uuid, uuid, uuid);

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA reclaim FROM PUBLIC;
