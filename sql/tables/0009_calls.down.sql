DELETE FROM reclaim.cascade_participants WHERE name = 'reclaim.calls';
DROP TABLE reclaim.call_calls;
DELETE FROM reclaim.work_items WHERE kind = 'hangup';
