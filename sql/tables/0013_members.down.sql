DO $$
DECLARE
  v_home regclass := (SELECT CASE relkind WHEN 'v' THEN to_regclass('public.customer_customers') ELSE oid::regclass END
    FROM pg_class WHERE oid = to_regclass('reclaim.customer_customers'));
  v_owner uuid;
BEGIN
  EXECUTE format('SELECT owner_user_id FROM %s WHERE status <> ''deleted'' AND owner_user_id IS NOT NULL
    GROUP BY 1 HAVING count(*) > 1 LIMIT 1', v_home) INTO v_owner;
  IF v_owner IS NOT NULL THEN
    RAISE EXCEPTION 'the user % owns several customers that are not deleted', v_owner
      USING HINT = 'Before this step a user owned one. Give the others another owner, or none, then take the step back.';
  END IF;
  EXECUTE (SELECT string_agg(format('DROP INDEX %s', indexrelid::regclass), ';') FROM pg_index
           WHERE indrelid = v_home AND indexrelid::regclass::text ~ 'customer_by_(name|email)$');
  EXECUTE format('CREATE UNIQUE INDEX customer_one_live_per_owner ON %s (owner_user_id) WHERE status <> ''deleted''', v_home);
END
$$;
DROP TABLE reclaim.customer_members;
