-- Empties the rows that users who are going have in the tables of RECLAIM_OWNERSHIP, unless they are somebody else's too. The
-- rows themselves stay, since others may refer to them. What is left stands in the ledgers of p_customers. p_all: of users
-- whose own rows stay; else only in tables from which the deletion of a user takes the user's id, or where no key has it.
CREATE OR REPLACE FUNCTION reclaim.clear_ownership(p_users uuid[], p_customers uuid[], p_all boolean) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
DECLARE
  v_owned text[] := (SELECT ownership FROM reclaim.installation);
  v_home record;
  v_reason text;
BEGIN
  FOR v_home IN
    SELECT c.oid::regclass AS name, array_agg(a.attname::text) AS columns,
      string_agg(format('o.%I = ANY ($1::%s[])', a.attname, format_type(a.atttypid, NULL)), ' OR ') AS mine
    FROM unnest(v_owned) AS one CROSS JOIN LATERAL string_to_array(one, '.') AS part
    JOIN pg_class c ON c.oid = to_regclass(format('%I.%I', part[1], part[2])) AND c.relkind IN ('r', 'p')
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = part[3] AND NOT a.attisdropped
    WHERE p_all OR NOT EXISTS (SELECT FROM pg_constraint k WHERE k.contype = 'f' AND k.conrelid = c.oid AND k.conkey = ARRAY[a.attnum]
      AND k.confrelid = to_regclass('auth.users') AND k.confdeltype IN ('a', 'r', 'c'))
    GROUP BY c.oid ORDER BY c.oid
  LOOP
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
