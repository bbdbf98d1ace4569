-- Keeps the monthly (UTC) partitions of the audit tables: makes those of this month and the next two, moves their rows out
-- of the default partition, and drops empty partitions of months before the last. Returns how many it made. A partition
-- that another session has locked, or is making, is left for the next call; until then its rows go to the default one.
--
-- A partition is attached, which does not lock the parent against statements; only the default one is locked, briefly.
-- Runs as its owner, since a role that serves may not create tables.
CREATE OR REPLACE FUNCTION reclaim.make_audit_partitions() RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms'
AS $$
DECLARE
  v_this timestamp := date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC');
  v_parent text;
  v_part text;
  v_from timestamptz;
  v_to timestamptz;
  v_used boolean;
  v_made integer := 0;
BEGIN
  FOREACH v_parent IN ARRAY ARRAY['auth_cleanup_log', 'auth_cleanup_events', 'customer_log'] LOOP
    FOR v_month IN 0 .. 2 LOOP
      v_from := (v_this + make_interval(months => v_month)) AT TIME ZONE 'UTC';
      v_to := (v_this + make_interval(months => v_month + 1)) AT TIME ZONE 'UTC';
      v_part := format('%s_%s', v_parent, to_char(v_this + make_interval(months => v_month), 'YYYY_MM'));
      CONTINUE WHEN to_regclass('reclaim.' || v_part) IS NOT NULL;
      BEGIN
        EXECUTE format('LOCK TABLE reclaim.%I IN ACCESS EXCLUSIVE MODE', v_parent || '_default');
        EXECUTE format('CREATE TABLE reclaim.%I (LIKE reclaim.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)',
          v_part, v_parent);
        EXECUTE format('REVOKE ALL ON reclaim.%I FROM PUBLIC', v_part);
        EXECUTE format('WITH gone AS (DELETE FROM reclaim.%I WHERE created_at >= $1 AND created_at < $2 RETURNING *)
          INSERT INTO reclaim.%I SELECT * FROM gone', v_parent || '_default', v_part) USING v_from, v_to;
        EXECUTE format('ALTER TABLE reclaim.%I ATTACH PARTITION reclaim.%I FOR VALUES FROM (%L) TO (%L)', v_parent, v_part,
          v_from, v_to);
        v_made := v_made + 1;
      EXCEPTION WHEN lock_not_available OR deadlock_detected OR duplicate_table OR duplicate_object OR unique_violation THEN
        NULL;
      END;
    END LOOP;

    FOR v_part IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = to_regclass('reclaim.' || v_parent) AND c.relname ~ ('^' || v_parent || '_\d{4}_\d\d$')
          AND right(c.relname, 7) < to_char(v_this - interval '1 month', 'YYYY_MM') LOOP
      BEGIN
        EXECUTE format('SELECT EXISTS (SELECT FROM reclaim.%I)', v_part) INTO v_used;
        CONTINUE WHEN v_used;
        EXECUTE format('LOCK TABLE reclaim.%I, reclaim.%I IN ACCESS EXCLUSIVE MODE', v_parent, v_part);
        EXECUTE format('SELECT EXISTS (SELECT FROM reclaim.%I)', v_part) INTO v_used;
        CONTINUE WHEN v_used;
        EXECUTE format('DROP TABLE reclaim.%I', v_part);
      EXCEPTION WHEN lock_not_available OR deadlock_detected OR undefined_table THEN
        NULL;
      END;
    END LOOP;
  END LOOP;
  RETURN v_made;
END
$$;
REVOKE ALL ON FUNCTION reclaim.make_audit_partitions FROM PUBLIC;
