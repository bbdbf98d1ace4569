DO $$
DECLARE
  v_home regclass := (SELECT CASE relkind WHEN 'v' THEN to_regclass('public.customer_customers') ELSE oid::regclass END
    FROM pg_class WHERE oid = to_regclass('reclaim.customer_customers'));
  v_added text[] := CASE WHEN v_home = 'reclaim.customer_customers'::regclass
    THEN ARRAY['deletion_effective_at', 'frozen_by', 'freeze_reason']
    ELSE ARRAY(SELECT column_name FROM reclaim.adopted_columns WHERE relation = v_home::text
      AND column_name IN ('deletion_effective_at', 'frozen_by', 'freeze_reason')) END;
  v_columns text;
BEGIN
  EXECUTE (SELECT string_agg(format('DROP INDEX %s', indexrelid::regclass), ';') FROM pg_index
           WHERE indrelid = v_home AND indexrelid::regclass::text ~ 'customer_(by_effective_date|held)$');
  EXECUTE format('CREATE INDEX customer_by_schedule ON %s (tm_deletion_scheduled, id) WHERE status = ''frozen''', v_home);
  -- A view cannot lose columns.
  IF v_home <> 'reclaim.customer_customers'::regclass THEN
    DROP VIEW reclaim.customer_customers;
  END IF;
  SELECT string_agg(format('DROP COLUMN %I', one), ', ') INTO v_columns FROM unnest(v_added) AS one;
  IF v_columns IS NOT NULL THEN
    EXECUTE format('ALTER TABLE %s %s', v_home, v_columns);
  END IF;
  IF to_regclass('reclaim.customer_customers') IS NULL THEN
    EXECUTE format('CREATE VIEW reclaim.customer_customers AS SELECT * FROM %s', v_home);
  END IF;
END
$$;
DELETE FROM reclaim.adopted_columns WHERE column_name IN ('deletion_effective_at', 'frozen_by', 'freeze_reason');
DROP TABLE reclaim.customer_pending, reclaim.customer_told, reclaim.customer_transitions, reclaim.gate_ended;
ALTER TABLE reclaim.customer_log DROP COLUMN actor_role;
ALTER TABLE reclaim.erasures DROP COLUMN cleared;
ALTER TABLE reclaim.installation DROP COLUMN grace, DROP COLUMN mails, DROP COLUMN expired_until;
DELETE FROM reclaim.work_items WHERE kind = 'anonymise';
