-- All steps of reclaim.rescan_own. A customer that makes one fail does not keep the others from it; failed: those. trouble:
-- which steps, of the first few, and why.
CREATE OR REPLACE FUNCTION reclaim.rescan_owns(p_ids uuid[], OUT changed uuid[], OUT failed uuid[], OUT trouble text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
DECLARE
  v_step text;
  v_id uuid;
BEGIN
  changed := '{}';
  failed := '{}';
  FOREACH v_step IN ARRAY ARRAY['billing_accounts', 'customer_customers', 'accounts', 'keys', 'users'] LOOP
    BEGIN
      changed := changed || reclaim.rescan_own(v_step, p_ids);
      CONTINUE;
    EXCEPTION WHEN OTHERS THEN
      IF SQLSTATE ~ '^(40|57)' THEN
        RAISE; -- it may go well another time
      ELSIF SQLSTATE = '55P03' THEN -- a table is locked: it would be waited for with each of them again
        failed := failed || p_ids;
        trouble := concat_ws(', ', trouble, format('%s %s', v_step, SQLSTATE));
        CONTINUE;
      END IF;
    END;
    FOREACH v_id IN ARRAY p_ids LOOP
      BEGIN
        changed := changed || reclaim.rescan_own(v_step, ARRAY[v_id]);
      EXCEPTION WHEN OTHERS THEN
        IF SQLSTATE ~ '^(40|57)' THEN
          RAISE;
        END IF;
        failed := failed || v_id;
        IF cardinality(failed) <= 5 THEN
          trouble := concat_ws(', ', trouble, format('%s of %s %s', v_step, v_id, SQLSTATE));
        END IF;
      END;
    END LOOP;
  END LOOP;
END
$$;
REVOKE ALL ON FUNCTION reclaim.rescan_owns FROM PUBLIC;
