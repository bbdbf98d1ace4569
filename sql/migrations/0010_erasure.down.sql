DELETE FROM reclaim.cascade_participants WHERE name = 'reclaim.calls';
DROP FUNCTION reclaim.erasure_preview(uuid, integer), reclaim.erasure_ledger(uuid);
