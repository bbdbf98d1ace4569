-- What the console shows of all instances together.
ALTER TABLE reclaim.instances
  ADD COLUMN has_broker boolean NOT NULL DEFAULT false,  -- RECLAIM_AMQP_URL is set
  ADD COLUMN refused_last_hour bigint NOT NULL DEFAULT 0; -- requests that its limits refused
