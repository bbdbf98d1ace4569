DELETE FROM reclaim.work_items WHERE kind = 'hangup_by_setting';
DROP INDEX reclaim.call_by_sip;
DELETE FROM reclaim.call_calls c USING reclaim.call_calls first
  WHERE c.sip_call_id = first.sip_call_id AND coalesce(c.from_tag, '') = coalesce(first.from_tag, '')
    AND coalesce(c.cseq, 0) = coalesce(first.cseq, 0) AND c.customer_id = first.customer_id
    AND c.direction = first.direction AND (c.tm_create, c.id) > (first.tm_create, first.id);
CREATE UNIQUE INDEX call_by_sip ON reclaim.call_calls
  (sip_call_id, coalesce(from_tag, ''), coalesce(cseq, 0), customer_id, direction) WHERE sip_call_id IS NOT NULL;
ALTER TABLE reclaim.call_calls DROP COLUMN switch;
DROP TABLE reclaim.switches;
