-- What was admitted under each limit, and for how long it counts.

-- Requests admitted under a key in one bucket, the last of them at last_at. A row counts in full until last_at has left
-- the window, so that no request stops counting early and none counts longer than the window.
--
-- Under a limit of up to 100 each microsecond is a bucket of its own. Larger limits have a hundred buckets a window, and
-- bucket_time is the end of the bucket: never before last_at, so that a range of bucket_time finds every row that
-- counts, whatever window it was written under. Rows without last_at, written by other programs, count from bucket_time.
--
-- No index on the time alone: pruning goes by each key's tier and reads the whole table anyway, and with a choice
-- PostgreSQL may count a key by scanning the buckets of all keys in its window.
CREATE TABLE reclaim.rate_limits (
  key text NOT NULL,
  bucket_time timestamptz NOT NULL,
  count integer NOT NULL DEFAULT 1,
  last_at timestamptz,
  PRIMARY KEY (key, bucket_time)
) WITH (fillfactor = 50);

-- How long the buckets of a tier (the key up to its first colon) are needed.
CREATE TABLE reclaim.rate_limit_tiers (
  tier text PRIMARY KEY,
  window_seconds integer NOT NULL CHECK (window_seconds > 0)
);

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA reclaim FROM PUBLIC;
