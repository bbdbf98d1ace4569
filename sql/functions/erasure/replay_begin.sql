-- The first step after a restore. The epoch grows past that of the journal (p_epoch), so that consumers take what follows; keys that
-- signed after the backup (p_generation) are known again. Codes, sessions and, unless p_keeps_keys, API keys end: some of them had
-- ended after the backup. Mails that were waiting at the backup are dropped: they were sent, or are out of date.
CREATE OR REPLACE FUNCTION reclaim.replay_begin(p_epoch integer, p_generation integer, p_keeps_keys boolean, OUT epoch integer,
  OUT codes bigint, OUT sessions bigint, OUT keys bigint, OUT mails bigint)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_restored timestamptz;
BEGIN
  UPDATE reclaim.installation i SET epoch = greatest(i.epoch, p_epoch) + 1, proof_generation = greatest(i.proof_generation, p_generation),
      restored_at = coalesce(i.restored_at, clock_timestamp())
    RETURNING i.epoch, i.restored_at INTO replay_begin.epoch, v_restored;
  -- Also those that waited at the backup, and those of programs that wrote before an instance had noticed the restore.
  UPDATE reclaim.event_outbox o SET epoch = replay_begin.epoch WHERE o.published_at IS NULL;
  WITH gone AS (DELETE FROM reclaim.verification_codes RETURNING 1) SELECT count(*) INTO codes FROM gone;
  WITH gone AS (DELETE FROM reclaim.sign_in_codes RETURNING 1) SELECT codes + count(*) INTO codes FROM gone;
  WITH gone AS (DELETE FROM reclaim.sessions RETURNING 1) SELECT count(*) INTO sessions FROM gone;
  keys := 0;
  IF NOT p_keeps_keys THEN
    WITH ended AS (UPDATE reclaim.access_keys SET revoked_at = clock_timestamp() WHERE revoked_at IS NULL RETURNING 1)
      SELECT count(*) INTO keys FROM ended;
  END IF;
  WITH gone AS (DELETE FROM reclaim.work_items w WHERE w.kind = 'mail' AND w.created_at < v_restored RETURNING 1)
    SELECT count(*) INTO mails FROM gone;
  -- Marks are numbers of transactions, which another cluster counts anew.
  UPDATE reclaim.sealed_sources SET mark = floor, mark_xid = '0', marked_at = '-infinity';
END
$$;
REVOKE ALL ON FUNCTION reclaim.replay_begin FROM PUBLIC;
