-- Events that RabbitMQ confirmed though no queue was bound for them: nobody has them yet. `reclaim events redrive`
-- publishes them again.
CREATE TABLE reclaim.event_returns (
  event_id uuid PRIMARY KEY REFERENCES reclaim.event_outbox (id) ON DELETE CASCADE,
  position bigint NOT NULL UNIQUE,
  returned_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

REVOKE ALL ON reclaim.event_returns FROM PUBLIC;
