-- Why a table cannot take part, as a sentence that says what to do; null when it can.
CREATE OR REPLACE FUNCTION reclaim.cascade_lack(p reclaim.cascade_participants) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog
AS $$
DECLARE
  v_table regclass := to_regclass(p.table_name);
  v_command text := reclaim.cascade_command(p);
  v_column pg_attribute;
  v_name text;
BEGIN
  IF v_table IS NULL THEN
    RETURN format('there is no table %s', p.table_name);
  END IF;
  IF (SELECT relkind FROM pg_class WHERE oid = v_table) NOT IN ('r', 'p') THEN
    RETURN format('%s is not a table', p.table_name);
  END IF;
  IF coalesce((SELECT inhparent FROM pg_inherits WHERE inhrelid = v_table), v_table) IN (to_regclass('reclaim.customer_customers'), to_regclass('public.customer_customers'),
      to_regclass('reclaim.billing_accounts'), to_regclass('public.billing_accounts'),
      to_regclass('reclaim.event_outbox'), to_regclass('reclaim.customer_log'), to_regclass('reclaim.access_keys'),
      to_regclass('reclaim.erasures'), to_regclass('reclaim.cascade_receipts')) THEN
    RETURN format('%s is looked after by Reclaim itself', p.table_name);
  END IF;
  SELECT * INTO v_column FROM pg_attribute WHERE attrelid = v_table AND attname = p.customer_column AND NOT attisdropped;
  IF v_column IS NULL THEN
    RETURN format('%s has no column %I', p.table_name, p.customer_column);
  END IF;
  IF v_column.atttypid NOT IN ('uuid'::regtype, 'text'::regtype, 'varchar'::regtype) THEN
    RETURN format('%s.%I is of type %s; the %s''s id must be a uuid, text or varchar', p.table_name,
      p.customer_column, format_type(v_column.atttypid, NULL), p.id_of);
  END IF;
  IF NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = v_table AND i.indisvalid AND i.indkey[0] = v_column.attnum
      AND i.indpred IS NULL AND (SELECT amname FROM pg_class c JOIN pg_am am ON am.oid = c.relam WHERE c.oid = i.indexrelid) IN ('btree', 'hash')) THEN
    RETURN format('%s has no index that starts with %I: CREATE INDEX CONCURRENTLY ON %1$s (%2$I)', p.table_name,
      p.customer_column);
  END IF;
  IF p.soft_delete_column IS NOT NULL THEN
    IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = v_table AND attname = p.soft_delete_column
        AND NOT attisdropped AND atttypid IN ('timestamptz'::regtype, 'timestamp'::regtype)) THEN
      RETURN format('%s has no column %I that holds a time', p.table_name, p.soft_delete_column);
    END IF;
  END IF;
  FOREACH v_name IN ARRAY array_remove(p.scrub_columns, '*') LOOP
    IF v_name IN (p.customer_column, p.soft_delete_column) THEN
      RETURN format('%s.%I is not emptied: the erasure needs it', p.table_name, v_name);
    ELSIF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = v_table AND attname = v_name AND attnum > 0 AND NOT attisdropped) THEN
      RETURN format('%s has no column %I', p.table_name, v_name);
    END IF;
  END LOOP;
  IF NOT reclaim.sees_all_rows(v_table, v_command) THEN
    RETURN format('row-level security hides rows of %s from this role, or keeps it from changing them: %s', p.table_name,
      reclaim.row_security_mend(v_table, v_command));
  END IF;
  IF NOT has_table_privilege(v_table, 'SELECT') OR NOT has_table_privilege(v_table, v_command) THEN
    RETURN format('this role may not delete from %s: GRANT SELECT, %s ON %1$s TO %I', p.table_name, v_command, current_user);
  END IF;
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_lack FROM PUBLIC;
