-- The call object of the API. One expression, so that it is inlined: planning a function's body at every call would cost
-- more than running it.
CREATE OR REPLACE FUNCTION reclaim.call_object(c reclaim.call_calls) RETURNS json
LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT pg_catalog.json_build_object('id', c.id, 'customer_id', c.customer_id, 'direction', c.direction,
    'source', reclaim.shown_text(c.source), 'destination', reclaim.shown_text(c.destination), 'status', c.status,
    'hangup_reason', reclaim.shown_text(c.hangup_reason), 'switch', reclaim.shown_text(c.switch),
    'sip_call_id', reclaim.shown_text(c.sip_call_id), 'from_tag', reclaim.shown_text(c.from_tag),
    'to_tag', reclaim.shown_text(c.to_tag), 'cseq', c.cseq,
    'master_call_id', c.master_call_id, 'confbridge_id', c.confbridge_id, 'groupcall_id', c.groupcall_id,
    'tm_create', reclaim.rfc3339(c.tm_create), 'tm_update', reclaim.rfc3339(c.tm_update),
    'tm_progressing', reclaim.rfc3339(c.tm_progressing), 'tm_hangup', reclaim.rfc3339(c.tm_hangup),
    'tm_delete', reclaim.rfc3339(c.tm_delete))
$$;
REVOKE ALL ON FUNCTION reclaim.call_object FROM PUBLIC;
