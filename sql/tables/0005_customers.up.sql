-- What is kept about customers beside their rows.

-- What was done to a customer, by whom; nothing personal. Partitioned as reclaim.auth_cleanup_log is.
CREATE TABLE reclaim.customer_log (
  id bigint GENERATED ALWAYS AS IDENTITY,
  customer_id uuid,
  action text NOT NULL,      -- freeze, recover, delete, hold, unhold, expire, login, …
  actor text NOT NULL,       -- owner, key, admin, operator (at the command line), system
  actor_id uuid,             -- a user's or a key's id
  outcome text NOT NULL,     -- done, unchanged, or the error's name
  detail text NOT NULL DEFAULT '',
  correlation_id uuid,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (id, created_at)
) PARTITION BY RANGE (created_at);
CREATE TABLE reclaim.customer_log_default PARTITION OF reclaim.customer_log DEFAULT;
CREATE INDEX customer_log_customer_id_idx ON reclaim.customer_log (customer_id, created_at);
CREATE INDEX customer_log_correlation_id_idx ON reclaim.customer_log (correlation_id);
CREATE INDEX customer_log_created_at_idx ON reclaim.customer_log (created_at);
-- Nearly empty: a deletion empties the details of its customers in every partition.
CREATE INDEX customer_log_detail_idx ON reclaim.customer_log (customer_id) WHERE detail <> '';

-- Which reminder was promised to whom; freezing again is another schedule.
CREATE TABLE reclaim.reminders (
  customer_id uuid NOT NULL,
  scheduled timestamptz NOT NULL,
  before_ms bigint NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (customer_id, scheduled, before_ms)
);

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA reclaim FROM PUBLIC;
