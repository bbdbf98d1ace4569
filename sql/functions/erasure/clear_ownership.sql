-- Empties the rows that users who are going have in the tables of RECLAIM_OWNERSHIP, unless they are somebody else's too. The
-- rows themselves stay, since others may refer to them. What is left stands in the ledgers of p_customers. p_all: of users
-- whose own rows stay; else only in tables from which the deletion of a user takes the user's id, or where no key has it.
CREATE OR REPLACE FUNCTION reclaim.clear_ownership(p_users uuid[], p_customers uuid[], p_all boolean) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
DECLARE
  v_home record;
  v_reason text;
BEGIN
  FOR v_home IN SELECT * FROM reclaim.ownership_tables(p_all) LOOP
    BEGIN
      v_reason := reclaim.row_security_mend(v_home.name, 'SELECT');
      IF v_reason IS NULL THEN
        PERFORM reclaim.clear_owned(v_home.name, v_home.mine, v_home.columns, p_users, p_customers);
        CONTINUE;
      END IF;
    EXCEPTION WHEN insufficient_privilege THEN
      v_reason := format('GRANT SELECT, UPDATE ON %s TO %I', v_home.name, current_user);
    END;
    PERFORM reclaim.erasure_keep_of_users(p_customers, p_users, v_home.name::text, 'table',
      format('Reclaim may not change it: %s', v_reason));
  END LOOP;
END
$$;
REVOKE ALL ON FUNCTION reclaim.clear_ownership FROM PUBLIC;
