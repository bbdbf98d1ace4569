-- Events to be published, and those that were returned.

-- Written by the transaction that changes a customer. Changes of one customer wait for each other at its row, so that
-- in the order of position each customer's sequence grows.
CREATE TABLE reclaim.event_outbox (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  position bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  sequence bigint NOT NULL, -- the customer's version
  type text NOT NULL CHECK (type IN ('customer_frozen', 'customer_recovered', 'customer_deleted')),
  customer_id uuid NOT NULL,
  payload jsonb NOT NULL, -- the customer object
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  published_at timestamptz,
  UNIQUE (customer_id, sequence)
);
CREATE INDEX event_outbox_unpublished ON reclaim.event_outbox (position) WHERE published_at IS NULL;

-- Events that RabbitMQ confirmed though no queue was bound for them: no consumer has them. `reclaim events redrive`
-- publishes them again.
CREATE TABLE reclaim.event_returns (
  event_id uuid PRIMARY KEY REFERENCES reclaim.event_outbox (id) ON DELETE CASCADE,
  position bigint NOT NULL UNIQUE,
  returned_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA reclaim FROM PUBLIC;
