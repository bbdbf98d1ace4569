-- Deletes login identities of owners and members of customers that are deleted, so that their addresses can be registered
-- again, unless they own, belong to or are a customer that is not. Memberships of customers that are deleted go in either case.
-- A row that a foreign key keeps from being deleted is anonymised instead (reclaim.alias_users). p_customers: those in whose
-- ledgers stands what is left.
CREATE OR REPLACE FUNCTION reclaim.remove_users(p_users uuid[], p_customers uuid[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_going uuid[];
  v_kept uuid[] := '{}';
  v_some uuid[];
  v_key record;
  v_user uuid;
BEGIN
  IF NOT reclaim.sees_all_rows('auth.users', 'UPDATE DELETE') THEN
    RAISE insufficient_privilege USING MESSAGE = 'row-level security keeps this role from deleting from auth.users';
  END IF;
  IF NOT reclaim.sees_all_rows('reclaim.customer_members', 'DELETE') THEN
    RAISE insufficient_privilege USING MESSAGE = 'row-level security hides members of customers from this role';
  END IF;
  -- Locked before other customers are looked for: reclaim.keep_user lets none get the user afterwards, and of two
  -- deletions that share a user the second finds the first one's customer deleted.
  PERFORM FROM auth.users WHERE id = ANY (p_users) ORDER BY id FOR UPDATE;
  DELETE FROM reclaim.customer_members m WHERE m.user_id = ANY (p_users) AND NOT EXISTS (
    SELECT FROM reclaim.customer_customers c WHERE c.id = m.customer_id AND c.status <> 'deleted');
  v_going := ARRAY(SELECT one FROM unnest(p_users) AS one
    WHERE NOT EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.owner_user_id = one AND c.status <> 'deleted')
      AND NOT EXISTS (SELECT FROM reclaim.customer_members m WHERE m.user_id = one)
      AND NOT EXISTS (SELECT FROM reclaim.implied_customer(one)));
  IF cardinality(v_going) < cardinality(p_users) THEN
    PERFORM reclaim.erasure_keep_of_users(p_customers, ARRAY(SELECT id FROM auth.users
        WHERE id = ANY (p_users) AND NOT id = ANY (v_going)), 'auth.users', 'table', 'the login, with what it owns, belongs to another customer too');
  END IF;
  PERFORM set_config('reclaim.own_removal', 'on', true);
  PERFORM reclaim.clear_ownership(v_going, p_customers, false);
  PERFORM reclaim.forget_sign_ins(v_going, p_customers, false);
  FOR v_key IN
    SELECT k.conrelid::regclass AS name, a.attname FROM pg_constraint k
    JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
    WHERE k.contype = 'f' AND k.confrelid = to_regclass('auth.users') AND k.confdeltype IN ('a', 'r')
      AND cardinality(k.conkey) = 1 AND k.conparentid = 0
  LOOP
    BEGIN
      EXECUTE format('SELECT array_agg(DISTINCT %I) FROM %s WHERE %1$I = ANY ($1)', v_key.attname, v_key.name)
        INTO v_some USING v_going;
      v_kept := v_kept || coalesce(v_some, '{}');
    EXCEPTION WHEN insufficient_privilege THEN
      NULL; -- the DELETE below reports it
    END;
  END LOOP;
  v_going := ARRAY(SELECT unnest(v_going) EXCEPT SELECT unnest(v_kept) ORDER BY 1);
  BEGIN
    DELETE FROM auth.users WHERE id = ANY (v_going);
  EXCEPTION WHEN foreign_key_violation THEN
    FOREACH v_user IN ARRAY v_going LOOP
      BEGIN
        DELETE FROM auth.users WHERE id = v_user;
      EXCEPTION WHEN foreign_key_violation THEN
        v_kept := v_kept || v_user;
      END;
    END LOOP;
  END;
  IF EXISTS (SELECT FROM auth.users WHERE id = ANY (v_going) AND NOT id = ANY (v_kept)) THEN
    RAISE insufficient_privilege USING MESSAGE = 'a trigger or rule keeps rows of auth.users from being deleted';
  END IF;
  v_kept := ARRAY(SELECT DISTINCT unnest(v_kept));
  IF cardinality(v_kept) > 0 THEN
    PERFORM reclaim.alias_users(v_kept);
    PERFORM reclaim.forget_sign_ins(v_kept, p_customers, true);
    PERFORM reclaim.clear_ownership(v_kept, p_customers, true);
  END IF;
END
$$;
REVOKE ALL ON FUNCTION reclaim.remove_users FROM PUBLIC;
