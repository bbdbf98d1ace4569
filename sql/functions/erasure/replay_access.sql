-- Of a replay of erasures: ends codes, sessions and, unless p_keeps_keys, API keys, since some of them had ended after the backup. Mails
-- that were waiting at the backup are dropped: they were sent, or are out of date. sessions: those of the console too.
CREATE OR REPLACE FUNCTION reclaim.replay_access(p_keeps_keys boolean, OUT codes bigint, OUT sessions bigint, OUT keys bigint, OUT mails bigint)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  WITH gone AS (DELETE FROM reclaim.verification_codes RETURNING 1) SELECT count(*) INTO codes FROM gone;
  WITH gone AS (DELETE FROM reclaim.sign_in_codes RETURNING 1) SELECT codes + count(*) INTO codes FROM gone;
  WITH gone AS (DELETE FROM reclaim.sessions RETURNING 1) SELECT count(*) INTO sessions FROM gone;
  WITH ended AS (UPDATE reclaim.console_sessions SET ended_at = clock_timestamp() WHERE ended_at IS NULL RETURNING 1)
    SELECT sessions + count(*) INTO sessions FROM ended;
  keys := 0;
  IF NOT p_keeps_keys THEN
    WITH ended AS (UPDATE reclaim.access_keys SET revoked_at = clock_timestamp() WHERE revoked_at IS NULL RETURNING 1)
      SELECT count(*) INTO keys FROM ended;
  END IF;
  WITH gone AS (DELETE FROM reclaim.work_items w WHERE w.kind = 'mail' AND w.created_at < (SELECT i.restored_at FROM reclaim.installation i) RETURNING 1)
    SELECT count(*) INTO mails FROM gone;
  -- Marks are numbers of transactions, which another cluster counts anew.
  UPDATE reclaim.sealed_sources SET mark = floor, mark_xid = '0', marked_at = '-infinity';
END
$$;
REVOKE ALL ON FUNCTION reclaim.replay_access FROM PUBLIC;
