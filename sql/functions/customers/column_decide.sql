-- Records whether deletions keep or clear a column that Reclaim does not know, with an audit row. p_reason: why it is kept.
-- Returns what is wrong, or null.
CREATE OR REPLACE FUNCTION reclaim.column_decide(p_table text, p_column text, p_decision text, p_reason text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_table text := regexp_replace(p_table, '^(public|reclaim)\.', '');
BEGIN
  IF reclaim.own_columns(v_table) IS NULL THEN
    RETURN format('%s is none of the tables with columns of others: customer_customers, billing_accounts', p_table);
  ELSIF p_column = ANY (reclaim.own_columns(v_table)) THEN
    RETURN format('%s.%s is a column of Reclaim''s own', v_table, p_column);
  ELSIF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = reclaim.table_home(v_table) AND attname = p_column
      AND attnum > 0 AND NOT attisdropped) THEN
    RETURN format('%s has no column %s', reclaim.table_home(v_table), p_column);
  END IF;
  INSERT INTO reclaim.column_decisions (table_name, column_name, decision, reason) VALUES (v_table, p_column, p_decision, coalesce(p_reason, ''))
    ON CONFLICT (table_name, column_name) DO UPDATE SET decision = excluded.decision, reason = excluded.reason, decided_by = excluded.decided_by,
      decided_at = excluded.decided_at;
  INSERT INTO reclaim.customer_log (action, actor, actor_role, outcome, detail)
    VALUES ('column_' || p_decision, 'operator', session_user, 'done', concat_ws(': ', v_table || '.' || p_column, p_reason));
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION reclaim.column_decide FROM PUBLIC;
