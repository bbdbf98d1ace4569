-- Columns of adopted tables that Reclaim does not know. They are personal: a deletion clears them (reclaim.column_clearings)
-- unless the team decided otherwise.

CREATE TABLE reclaim.column_decisions (
  table_name text NOT NULL CHECK (table_name IN ('customer_customers', 'billing_accounts')),
  column_name text NOT NULL,
  decision text NOT NULL CHECK (decision IN ('keep', 'clear')),
  decided_by text NOT NULL DEFAULT session_user,
  decided_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (table_name, column_name)
);

-- The view of an adopted table has the columns that Reclaim knows and no others: the team may add, drop and rename its own.
-- Makes the view of an adopted table again, with these columns; PostgreSQL cannot take columns from a view. Its owner, its options
-- and the privileges on it stay, and so do the functions that take its rows. Dropped at the end of this step.
CREATE FUNCTION reclaim.remake_view(p_name text, p_columns text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog SET check_function_bodies = off
AS $$
DECLARE
  v_view pg_class;
  v_functions oid[];
  v_after text := '';
BEGIN
  SELECT * INTO v_view FROM pg_class WHERE oid = to_regclass('reclaim.' || p_name) AND relkind = 'v';
  IF NOT FOUND THEN
    RETURN;
  END IF;
  v_functions := ARRAY(SELECT DISTINCT p.oid FROM pg_type t
    JOIN pg_depend d ON d.refclassid = 'pg_type'::regclass AND d.refobjid IN (t.oid, t.typarray) AND d.classid = 'pg_proc'::regclass
    JOIN pg_proc p ON p.oid = d.objid AND p.pronamespace = 'reclaim'::regnamespace
    WHERE t.oid = v_view.reltype);
  SELECT string_agg(pg_get_functiondef(p.oid) || ';' || format('REVOKE ALL ON FUNCTION %s FROM PUBLIC;', p.oid::regprocedure), '')
    INTO v_after FROM pg_proc p WHERE p.oid = ANY (v_functions);
  v_after := coalesce(v_after, '') || coalesce((
    SELECT string_agg(format('GRANT %s ON %s %s TO %s%s;', g.privilege_type, g.kind, g.name,
      CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END,
      CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END), '')
    FROM (SELECT 'FUNCTION' AS kind, p.oid::regprocedure::text AS name, (aclexplode(p.proacl)).* FROM pg_proc p
        WHERE p.oid = ANY (v_functions)
      UNION ALL SELECT 'TABLE', 'reclaim.' || p_name, (aclexplode(v_view.relacl)).*) AS g), '');
  BEGIN
    IF cardinality(v_functions) > 0 THEN
      EXECUTE (SELECT 'DROP FUNCTION ' || string_agg(one::regprocedure::text, ', ') FROM unnest(v_functions) AS one);
    END IF;
    EXECUTE format('DROP VIEW reclaim.%I', p_name);
  EXCEPTION WHEN dependent_objects_still_exist THEN
    RAISE EXCEPTION 'objects of others depend on the view reclaim.%', p_name USING DETAIL = SQLERRM,
      HINT = format('Let them read public.%s, or drop them; then migrate again.', p_name);
  END;
  EXECUTE format('CREATE VIEW reclaim.%I %s AS SELECT %s FROM public.%1$I', p_name,
    coalesce('WITH (' || array_to_string(v_view.reloptions, ', ') || ')', ''), p_columns);
  IF v_view.relowner <> (SELECT relowner FROM pg_class WHERE oid = to_regclass('reclaim.' || p_name)) THEN
    EXECUTE format('ALTER VIEW reclaim.%I OWNER TO %s', p_name, v_view.relowner::regrole);
  END IF;
  EXECUTE v_after;
END
$$;
SELECT reclaim.remake_view('customer_customers', 'id, name, detail, email, phone_number, address, webhook_method, webhook_uri,
  billing_account_id, status, tm_deletion_scheduled, tm_create, tm_update, tm_delete, owner_user_id, version, frozen_api_at,
  frozen_calls_at, frozen_billing_at, hold_reason, hold_at, changed_xid, deletion_effective_at, frozen_by, freeze_reason');
SELECT reclaim.remake_view('billing_accounts', 'id, customer_id, name, status, hold_reasons, balance_micros, tm_create, tm_update,
  tm_delete');
DROP FUNCTION reclaim.remake_view(text, text);

-- reclaim.column_clearings takes its place.
DROP FUNCTION IF EXISTS reclaim.customer_columns_to_clear();

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
