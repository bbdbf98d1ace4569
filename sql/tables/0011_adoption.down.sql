-- A table that was made here goes; one that was found keeps its rows and loses what was added.
DO $$
DECLARE
  v_name text;
  v_relation text;
  v_column text;
BEGIN
  -- What step 0022 adopted it has given back.
  DELETE FROM reclaim.adopted_columns WHERE column_name = '';
  FOREACH v_name IN ARRAY ARRAY['customer_customers', 'billing_accounts'] LOOP
    SELECT min(relation) INTO v_relation FROM reclaim.adopted_columns
      WHERE relation IN ('public.' || v_name, 'reclaim.' || v_name);
    CONTINUE WHEN v_relation IS NULL;
    IF v_relation LIKE 'public.%' THEN
      EXECUTE format('DROP VIEW reclaim.%I', v_name);
    END IF;
    IF EXISTS (SELECT FROM reclaim.adopted_columns WHERE relation = v_relation AND column_name IS NULL) THEN
      EXECUTE format('DROP TABLE %s', v_relation);
      CONTINUE;
    END IF;
    IF v_name = 'customer_customers' THEN
      EXECUTE format('ALTER TABLE %s DROP CONSTRAINT customer_status_is_known,
        DROP CONSTRAINT customer_deleted_has_its_time, DROP CONSTRAINT customer_frozen_has_its_time', v_relation);
      EXECUTE (SELECT string_agg(format('DROP INDEX %s', indexrelid::regclass), ';') FROM pg_index
               WHERE indrelid = v_relation::regclass AND indexrelid::regclass::text ~
                 'customer_(one_live_per_owner|by_owner|by_status|by_schedule|by_layer|by_change)$');
    ELSE
      EXECUTE format('ALTER TABLE %s DROP CONSTRAINT billing_status_is_known,
        DROP CONSTRAINT billing_deleted_has_its_time', v_relation);
      EXECUTE (SELECT string_agg(format('DROP INDEX %s', indexrelid::regclass), ';') FROM pg_index
               WHERE indrelid = v_relation::regclass AND indexrelid::regclass::text ~ 'billing_by_customer$');
    END IF;
    FOR v_column IN SELECT column_name FROM reclaim.adopted_columns WHERE relation = v_relation LOOP
      EXECUTE format('ALTER TABLE %s DROP COLUMN %I', v_relation, v_column);
    END LOOP;
  END LOOP;
END
$$;

DROP TABLE reclaim.adopted_columns;
