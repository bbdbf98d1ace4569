-- Customers' versions go back when a database is restored from a backup, so that events of other changes have sequences that
-- consumers know already. The epoch grows with each restore; an event is newer if its epoch and sequence, in this order, are greater.
ALTER TABLE reclaim.installation ADD COLUMN epoch integer NOT NULL DEFAULT 1 CHECK (epoch >= 1);

-- In the order of position each customer's epoch and sequence grow.
ALTER TABLE reclaim.event_outbox
  ADD COLUMN epoch integer NOT NULL DEFAULT 1, -- of the installation, when the event was written
  DROP CONSTRAINT event_outbox_customer_id_sequence_key,
  ADD CONSTRAINT event_outbox_customer_id_epoch_sequence_key UNIQUE (customer_id, epoch, sequence);
