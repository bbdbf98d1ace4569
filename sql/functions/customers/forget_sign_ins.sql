-- Deletes what Supabase Auth keeps of users beside auth.users: p_all, for users whose rows stay, else what would stay when their
-- rows are deleted. A table that this role cannot empty is kept, and the ledgers of p_customers say so; where the rows of a
-- user stay, those by which the user could sign in are a fault instead.
CREATE OR REPLACE FUNCTION reclaim.forget_sign_ins(p_users uuid[], p_customers uuid[], p_all boolean) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
DECLARE
  v_table record;
  v_mend text;
BEGIN
  IF NOT p_all AND pg_relation_size(to_regclass('auth.audit_log_entries')) > 0 THEN
    PERFORM reclaim.erasure_keep_of_users(p_customers, p_users, 'auth.audit_log_entries', 'table',
      'Supabase Auth''s audit log has no key to users: prune it by age');
  END IF;
  FOR v_table IN SELECT * FROM reclaim.sign_in_tables() t WHERE t.stays OR p_all LOOP
    v_mend := reclaim.row_security_mend(v_table.name, 'DELETE');
    BEGIN
      IF v_mend IS NULL THEN
        EXECUTE format('DELETE FROM %s WHERE %s', v_table.name, v_table.condition) USING p_users;
        CONTINUE;
      END IF;
    EXCEPTION WHEN insufficient_privilege THEN
      v_mend := format('GRANT SELECT, DELETE ON %s TO %I', v_table.name, current_user);
    END;
    CONTINUE WHEN (SELECT c.relkind = 'r' AND pg_relation_size(c.oid) = 0 FROM pg_class c WHERE c.oid = v_table.name); -- no rows at all
    IF p_all AND EXISTS (SELECT FROM reclaim.personal_tables() p WHERE p.name = v_table.name) THEN
      RAISE insufficient_privilege USING MESSAGE = format('this role cannot delete from %s: %s', v_table.name, v_mend);
    END IF;
    PERFORM reclaim.erasure_keep_of_users(p_customers, p_users, v_table.name::text, 'table',
      format('Reclaim may not delete from it: %s', v_mend));
  END LOOP;
END
$$;
REVOKE ALL ON FUNCTION reclaim.forget_sign_ins FROM PUBLIC;
