-- Begins a replay of erasures with the next epoch: consumers know sequences up to that of the journal (p_epoch) and drop what follows
-- else; keys that signed after the backup (p_generation) are known again. p_since: when the first of the lost lines was written. An
-- hour before it is certainly before all that was changed since the restore, though the clocks of two servers differ. events: how many are published again;
-- null: another replay has ended meanwhile, and nothing is left to do.
--
-- Transactions that write events have ended when it goes on, and later ones see the new epoch: none is published with the old one.
CREATE OR REPLACE FUNCTION reclaim.replay_epoch(p_epoch integer, p_generation integer, p_since timestamptz, OUT epoch integer, OUT events bigint)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_restored timestamptz;
BEGIN
  LOCK TABLE reclaim.event_outbox IN SHARE ROW EXCLUSIVE MODE;
  SELECT i.epoch, i.restored_at INTO replay_epoch.epoch, v_restored FROM reclaim.installation i FOR UPDATE;
  IF v_restored IS NULL AND NOT EXISTS (SELECT FROM reclaim.journal_lines l WHERE l.lost) THEN
    RETURN;
  END IF;
  UPDATE reclaim.installation i SET epoch = greatest(i.epoch, p_epoch) + 1, proof_generation = greatest(i.proof_generation, p_generation),
      restored_at = coalesce(i.restored_at, clock_timestamp())
    RETURNING i.epoch INTO replay_epoch.epoch;
  events := reclaim.events_again(epoch, p_epoch, p_since - interval '1 hour');
END
$$;
REVOKE ALL ON FUNCTION reclaim.replay_epoch FROM PUBLIC;
