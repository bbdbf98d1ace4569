-- The audit tables: a partition a month, and a place for every row.
BEGIN;
SET LOCAL client_min_messages = warning;
SELECT plan(34);

CREATE FUNCTION pg_temp.month(n integer) RETURNS timestamptz LANGUAGE sql
AS $$ SELECT (date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC') + make_interval(months => n)) AT TIME ZONE 'UTC' $$;
CREATE FUNCTION pg_temp.part(parent text, n integer) RETURNS text LANGUAGE sql
AS $$ SELECT 'reclaim.' || parent || to_char(pg_temp.month(n) AT TIME ZONE 'UTC', '_YYYY_MM') $$;
CREATE FUNCTION pg_temp.parts(parent text) RETURNS bigint LANGUAGE sql
AS $$ SELECT count(*) FROM pg_inherits WHERE inhparent = ('reclaim.' || parent)::regclass $$;
CREATE FUNCTION pg_temp.log(at timestamptz, note text DEFAULT '') RETURNS text LANGUAGE sql AS $$
  INSERT INTO reclaim.customer_log (action, actor, outcome, created_at, detail) VALUES ('a', 'admin', 'done', at, note)
    RETURNING tableoid::regclass::text $$;
CREATE FUNCTION pg_temp.place(note text) RETURNS text LANGUAGE sql
AS $$ SELECT tableoid::regclass::text FROM reclaim.customer_log WHERE detail = note $$;

SELECT is(pg_temp.parts(parent), 4::bigint, parent || ' has this month, the next two and the default') FROM unnest(ARRAY['auth_cleanup_log', 'auth_cleanup_events', 'customer_log']) AS parent;
SELECT isnt(to_regclass(pg_temp.part(parent, n)), NULL) FROM unnest(ARRAY['auth_cleanup_log', 'auth_cleanup_events', 'customer_log']) AS parent, generate_series(0, 2) AS n;
SELECT is(reclaim.make_audit_partitions(), 0, 'repeated, it makes nothing');
SELECT is_empty($$SELECT c.oid::regclass FROM pg_class c, aclexplode(c.relacl) AS acl
  WHERE c.relnamespace = 'reclaim'::regnamespace AND c.relname ~ '_(log|events)_' AND acl.grantee = 0$$, 'none is open to PUBLIC');

SELECT is(pg_temp.log(clock_timestamp()), pg_temp.part('customer_log', 0), 'a row is in the partition of its month');
SELECT is(pg_temp.log(pg_temp.month(1) - interval '1 microsecond'), pg_temp.part('customer_log', 0), 'up to its last instant');
SELECT is(pg_temp.log(pg_temp.month(1)), pg_temp.part('customer_log', 1));
SELECT is(pg_temp.log('1999-12-31 23:59:59Z', 'past'), 'reclaim.customer_log_default', 'a clock that was set back loses nothing');
SELECT is(pg_temp.log('2999-01-01Z', 'future'), 'reclaim.customer_log_default', 'nor one that ran ahead');
SELECT is((SELECT count(DISTINCT id) FROM reclaim.customer_log), 5::bigint, 'ids are one sequence over all of them');

-- No leader for long: rows of a month without a partition wait in the default one, and are moved.
DO $$ BEGIN EXECUTE 'DROP TABLE ' || pg_temp.part('customer_log', 2); END $$;
SELECT is(pg_temp.log(pg_temp.month(2) + interval '1 day', 'late'), 'reclaim.customer_log_default');
SELECT is(reclaim.make_audit_partitions(), 1, 'a missing partition is made');
SELECT is(pg_temp.place('late'), pg_temp.part('customer_log', 2), 'with the rows that waited for it');
SELECT is(pg_temp.place('past'), 'reclaim.customer_log_default', 'and no others');
SELECT is((SELECT count(*) FROM reclaim.customer_log), 6::bigint, 'every row is there once');
SELECT is((SELECT array_agg(indexdef_of ORDER BY indexdef_of) FROM (SELECT regexp_replace(pg_get_indexdef(indexrelid), '^.* USING ', '') AS indexdef_of
      FROM pg_index WHERE indrelid = pg_temp.part('customer_log', 2)::regclass) AS made),
  (SELECT array_agg(indexdef_of ORDER BY indexdef_of) FROM (SELECT regexp_replace(pg_get_indexdef(indexrelid), '^.* USING ', '') AS indexdef_of
      FROM pg_index WHERE indrelid = 'reclaim.customer_log'::regclass) AS parents), 'it has the parent''s indexes');

-- Old partitions go once they are empty.
DO $$ BEGIN
  FOR n IN 2 .. 3 LOOP
    EXECUTE format('CREATE TABLE %s PARTITION OF reclaim.auth_cleanup_log FOR VALUES FROM (%L) TO (%L)',
      pg_temp.part('auth_cleanup_log', -n), pg_temp.month(-n), pg_temp.month(1 - n));
  END LOOP;
END $$;
INSERT INTO reclaim.auth_cleanup_log (correlation_id, email_hash, step, status, created_at)
  VALUES (gen_random_uuid(), 'x', 's', 'pending', pg_temp.month(-2));
SELECT is(reclaim.make_audit_partitions(), 0);
SELECT is(to_regclass(pg_temp.part('auth_cleanup_log', -3)), NULL, 'an empty one of before the last month is dropped');
SELECT isnt(to_regclass(pg_temp.part('auth_cleanup_log', -2)), NULL, 'one with rows stays');

-- The statements that find one row look into one partition.
CREATE FUNCTION pg_temp.explain(query text) RETURNS text LANGUAGE plpgsql
AS $$ DECLARE line text; lines text := ''; BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS off) ' || query LOOP lines := lines || line || E'\n'; END LOOP; RETURN lines; END $$;
SELECT is((SELECT count(*) FROM regexp_matches(pg_temp.explain(format(
    'UPDATE reclaim.auth_cleanup_log SET status = %L WHERE id = 1 AND created_at = %L', 'completed', clock_timestamp())), '(Scan (using|on))', 'g')),
  1::bigint, 'an update by id and time looks into one');

-- Events are facts: no row is changed, in whichever partition it is, and old ones are deleted.
INSERT INTO reclaim.auth_cleanup_events (kind, outcome, created_at) VALUES ('mail', 'sent', clock_timestamp()), ('mail', 'sent', '1999-12-31Z');
SELECT throws_ok($$UPDATE reclaim.auth_cleanup_events SET outcome = 'failed' WHERE created_at > now() - interval '1 day'$$, '23001', NULL, 'an event is not changed');
SELECT throws_ok($$UPDATE reclaim.auth_cleanup_events_default SET outcome = 'failed'$$, '23001', NULL, 'nor by its partition');
SELECT throws_ok(format('UPDATE %s SET outcome = %L', pg_temp.part('auth_cleanup_events', 0), 'failed'), '23001', NULL, 'nor in one that was attached');
SELECT lives_ok($$DELETE FROM reclaim.auth_cleanup_events WHERE created_at < '2000-01-01'$$, 'it goes when it is old');

SELECT * FROM finish();
ROLLBACK;
