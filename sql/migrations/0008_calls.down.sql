DROP FUNCTION reclaim.calls_end(uuid, boolean);
DROP FUNCTION reclaim.calls_of(uuid);
DROP FUNCTION reclaim.call_begin(uuid, text, text, text, text, text, bigint, uuid, uuid, uuid);
DROP FUNCTION reclaim.customer_turn(uuid);
DROP FUNCTION reclaim.call_others_answering(uuid, uuid);
DROP FUNCTION reclaim.call_object(reclaim.call_calls);
DROP TABLE reclaim.call_calls;
DROP FUNCTION reclaim.call_forget();
DELETE FROM reclaim.work_items WHERE kind = 'hangup';
