-- Of a sequence that came again, the event of the last epoch is kept.
DELETE FROM reclaim.event_outbox o WHERE EXISTS (
  SELECT FROM reclaim.event_outbox n WHERE n.customer_id = o.customer_id AND n.sequence = o.sequence AND n.epoch > o.epoch);
ALTER TABLE reclaim.event_outbox
  DROP CONSTRAINT event_outbox_customer_id_epoch_sequence_key,
  DROP COLUMN epoch,
  ADD CONSTRAINT event_outbox_customer_id_sequence_key UNIQUE (customer_id, sequence);
ALTER TABLE reclaim.installation DROP COLUMN epoch;
