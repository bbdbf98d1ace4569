-- What adopting the team's tables in schema public would do, and what stops it. Runs in a transaction that is rolled back, on a
-- database that step 0011 has not reached: `reclaim migrate` asks it before it changes anything, `reclaim migrate --check` prints it.
-- Times are estimated from the number of rows.
CREATE FUNCTION pg_temp.adoption_findings(p_balance text)
RETURNS TABLE (kind text, relation text, subject text, what text, advice text, lock_ms bigint)
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_table record;
  v_part record;
  v_count bigint;
  v_text text;
  v_retyped text[];
  v_added text[];
  v_lock bigint;
  v_known text[] := ARRAY['active', 'frozen', 'deleted'];
  v_live text := '(tm_delete IS NULL OR tm_delete NOT BETWEEN ''1970-01-02'' AND now() + interval ''1 year'')';
BEGIN
  FOR v_table IN
    SELECT c.oid::regclass AS rel, c.relname AS name, c.relkind, c.relowner, c.relrowsecurity AND c.relforcerowsecurity AS forced,
        CASE WHEN c.reltuples >= 0 THEN c.reltuples::bigint ELSE pg_relation_size(c.oid) / 120 END AS rows
      FROM pg_class c WHERE c.oid IN (to_regclass('public.customer_customers'), to_regclass('public.billing_accounts'))
        AND to_regclass('reclaim.' || c.relname) IS NULL
      ORDER BY c.relname DESC
  LOOP
    relation := v_table.rel::text;
    lock_ms := NULL;
    IF v_table.relkind <> 'r' THEN
      kind := 'refused'; subject := relation;
      what := format('it is a %s', CASE v_table.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'p' THEN 'partitioned table' ELSE 'foreign table' END);
      advice := 'Reclaim adopts plain tables: rename it, and give Reclaim a table of this name, or none';
      RETURN NEXT; CONTINUE;
    END IF;
    IF NOT pg_has_role(v_table.relowner, 'USAGE') THEN
      kind := 'refused'; subject := relation; what := format('it belongs to %s, and %s is no member of that role', v_table.relowner::regrole, current_user);
      advice := format('GRANT %s TO %s, or migrate as %1$s', v_table.relowner::regrole, current_user);
      RETURN NEXT; CONTINUE;
    END IF;
    IF v_table.forced AND NOT (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user) THEN
      kind := 'refused'; subject := relation; what := 'row security is forced, so that not all rows can be seen';
      advice := format('migrate as a role with BYPASSRLS, or ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', relation);
      RETURN NEXT;
    END IF;

    -- Columns.
    v_retyped := '{}';
    v_lock := 50;
    v_added := '{}';
    FOR v_part IN
      SELECT w.name, w.wants, a.attname IS NOT NULL AS there, format_type(a.atttypid, a.atttypmod) AS type, a.atttypid, t.typcategory, a.attgenerated, a.attidentity
        FROM (SELECT * FROM (VALUES ('customer_customers', 'id', 'uuid'), ('customer_customers', 'name', 'text'), ('customer_customers', 'detail', 'text'),
            ('customer_customers', 'email', 'text'), ('customer_customers', 'phone_number', 'text'), ('customer_customers', 'address', 'text'),
            ('customer_customers', 'webhook_method', 'text'), ('customer_customers', 'webhook_uri', 'text'), ('customer_customers', 'billing_account_id', 'uuid'),
            ('customer_customers', 'status', 'text'), ('customer_customers', 'tm_deletion_scheduled', 'timestamptz'), ('customer_customers', 'tm_create', 'timestamptz'),
            ('customer_customers', 'tm_update', 'timestamptz'), ('customer_customers', 'tm_delete', 'timestamptz'), ('customer_customers', 'owner_user_id', 'uuid'),
            ('customer_customers', 'version', 'bigint'), ('customer_customers', 'frozen_api_at', 'timestamptz'), ('customer_customers', 'frozen_calls_at', 'timestamptz'),
            ('customer_customers', 'frozen_billing_at', 'timestamptz'), ('customer_customers', 'hold_reason', 'text'), ('customer_customers', 'hold_at', 'timestamptz'),
            ('customer_customers', 'changed_xid', 'xid8'), ('customer_customers', 'deletion_effective_at', 'timestamptz'), ('customer_customers', 'frozen_by', 'text'),
            ('customer_customers', 'freeze_reason', 'text'), ('billing_accounts', 'id', 'uuid'), ('billing_accounts', 'customer_id', 'uuid'),
            ('billing_accounts', 'name', 'text'), ('billing_accounts', 'status', 'text'), ('billing_accounts', 'hold_reasons', 'text[]'),
            ('billing_accounts', 'balance_micros', 'bigint'), ('billing_accounts', 'tm_create', 'timestamptz'), ('billing_accounts', 'tm_update', 'timestamptz'),
            ('billing_accounts', 'tm_delete', 'timestamptz')) AS v (relname, name, wants)) AS w
        LEFT JOIN pg_attribute a ON a.attrelid = v_table.rel AND a.attname = w.name AND NOT a.attisdropped LEFT JOIN pg_type t ON t.oid = a.atttypid
        WHERE w.relname = v_table.name
    LOOP
      kind := 'refused'; subject := 'column ' || v_part.name; advice := NULL; what := NULL;
      IF NOT v_part.there THEN
        IF v_part.name = 'id' OR v_part.name = 'customer_id' AND v_table.rows > 0 THEN
          what := 'the table has no such column'; advice := format('add it, of type uuid, with a value in every row');
        ELSE
          v_added := v_added || v_part.name::text;
        END IF;
      ELSIF v_part.attgenerated <> '' OR v_part.attidentity <> '' THEN
        what := 'it is generated, and Reclaim must be able to write it'; advice := format('ALTER TABLE %s ALTER COLUMN %I DROP EXPRESSION (or DROP IDENTITY), or rename it', relation, v_part.name);
      ELSIF v_part.wants = 'timestamptz' AND v_part.atttypid = 'timestamp'::regtype THEN
        kind := 'change'; what := format('%s becomes timestamptz, as UTC; the table is not written anew', v_part.type);
        v_retyped := v_retyped || v_part.name::text;
      ELSIF v_part.wants = 'uuid' AND v_part.typcategory = 'S' OR v_part.name = 'status' AND v_part.typcategory = 'E' THEN
        v_retyped := v_retyped || v_part.name::text;
        v_lock := v_lock + v_table.rows / 200;
        IF v_part.wants = 'uuid' THEN
          EXECUTE format('SELECT count(*) FROM %s WHERE %I::text <> '''' AND %2$I::text !~* ''^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$''', v_table.rel, v_part.name) INTO v_count;
        ELSE
          v_count := 0;
        END IF;
        v_text := CASE WHEN v_part.wants = 'uuid' THEN 'uuid' ELSE 'text' END;
        IF v_count > 0 THEN
          what := format('it is %s, and %s of its values are no uuids, which Reclaim needs', v_part.type, v_count);
          advice := 'give these rows uuids, here and where they are referred to';
        ELSIF EXISTS (SELECT FROM pg_constraint c JOIN pg_attribute a ON a.attname = v_part.name AND a.attrelid = v_table.rel
            WHERE c.contype = 'f' AND (c.conrelid = v_table.rel AND a.attnum = ANY (c.conkey) OR c.confrelid = v_table.rel AND a.attnum = ANY (c.confkey))) THEN
          what := format('it is %s, Reclaim needs %s, and a foreign key holds it to that type', v_part.type, v_text);
          advice := format('drop the foreign keys, change both columns with ALTER TABLE … ALTER COLUMN … TYPE %s USING …::%1$s, and add them again', v_text);
        ELSIF v_table.rows > 150000 THEN
          what := format('it is %s, Reclaim needs %s, and the table is large', v_part.type, v_text);
          advice := format('ALTER TABLE %s ALTER COLUMN %I TYPE %s USING %2$I::%3$s at a quiet time: about %s s under an exclusive lock', relation, v_part.name,
            v_text, 1 + v_table.rows / 200000);
        ELSE
          kind := 'change'; what := format('%s becomes %s, under an exclusive lock of about %s ms', v_part.type, v_text, 50 + v_table.rows / 200);
        END IF;
      ELSIF v_part.wants = 'text' AND v_part.typcategory <> 'S' OR v_part.wants <> 'text' AND v_part.atttypid <> to_regtype(v_part.wants) THEN
        what := format('it is %s, Reclaim needs %s', v_part.type, v_part.wants);
        advice := format('change its type to %s, or rename it', v_part.wants);
      END IF;
      IF what IS NOT NULL THEN
        RETURN NEXT;
      END IF;
    END LOOP;
    advice := NULL;
    IF v_added <> '{}' THEN
      kind := 'change'; subject := 'columns'; what := 'added: ' || array_to_string(v_added, ', ');
      RETURN NEXT;
    END IF;

    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = v_table.rel AND attname = 'id' AND NOT attisdropped)
        AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = v_table.rel AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indnkeyatts = 1
          AND i.indkey[0] = (SELECT attnum FROM pg_attribute WHERE attrelid = v_table.rel AND attname = 'id')) THEN
      kind := 'refused'; subject := 'column id'; what := 'no unique index is on it'; advice := format('ALTER TABLE %s ADD PRIMARY KEY (id)', relation);
      RETURN NEXT;
    END IF;

    -- Rows.
    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = v_table.rel AND attname = 'status' AND NOT attisdropped) THEN
      FOR v_part IN EXECUTE format('SELECT status::text AS label, count(*) AS n FROM %s WHERE status::text <> '''' AND NOT status::text = ANY ($1) %s GROUP BY 1 ORDER BY 2 DESC LIMIT 10',
          v_table.rel, CASE WHEN EXISTS (SELECT FROM pg_attribute WHERE attrelid = v_table.rel AND attname = 'tm_delete' AND NOT attisdropped
            AND atttypid IN ('timestamp'::regtype, 'timestamptz'::regtype)) THEN 'AND ' || v_live ELSE '' END) USING v_known LOOP
        kind := 'refused'; subject := 'column status'; what := format('%s rows have status "%s"', v_part.n, v_part.label);
        advice := format('Reclaim knows active, frozen and deleted: give these rows one of them, and keep what "%s" means in a column of your own', v_part.label);
        RETURN NEXT;
      END LOOP;
    END IF;
    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = v_table.rel AND attname = 'customer_id' AND NOT attisdropped) AND v_table.name = 'billing_accounts' THEN
      EXECUTE format('SELECT count(*) FROM %s WHERE customer_id IS NULL', v_table.rel) INTO v_count;
      IF v_count > 0 THEN
        kind := 'refused'; subject := 'column customer_id'; what := format('%s accounts have no customer', v_count);
        advice := 'give them one, or delete them';
        RETURN NEXT;
      END IF;
    END IF;
    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = v_table.rel AND attname = 'owner_user_id' AND NOT attisdropped AND atttypid = 'uuid'::regtype) AND v_table.name = 'customer_customers' THEN
      EXECUTE format('SELECT count(*) FROM (SELECT FROM %s WHERE owner_user_id IS NOT NULL GROUP BY owner_user_id HAVING count(*) > 1) AS several', v_table.rel) INTO v_count;
      IF v_count > 0 THEN
        kind := 'note'; subject := 'column owner_user_id'; what := format('%s users own several customers', v_count);
        advice := 'they choose one with the header X-Reclaim-Customer';
        RETURN NEXT;
      END IF;
    ELSIF v_table.name = 'customer_customers' THEN
      kind := 'note'; subject := 'column owner_user_id'; what := 'no customer has an owner after the adoption';
      advice := 'reclaim customers import --owners fills it';
      RETURN NEXT;
    END IF;

    -- Constraints, indexes, views, triggers.
    FOR v_part IN SELECT conname, pg_get_constraintdef(oid) AS definition FROM pg_constraint
        WHERE conrelid = v_table.rel AND contype = 'c' AND pg_get_constraintdef(oid) ~ '\mstatus\M' AND NOT pg_get_constraintdef(oid) ~ 'frozen.*deleted|deleted.*frozen' LOOP
      kind := 'refused'; subject := 'constraint ' || v_part.conname; what := format('it does not allow the status frozen and deleted: %s', v_part.definition);
      advice := format('ALTER TABLE %s DROP CONSTRAINT %I', relation, v_part.conname);
      RETURN NEXT;
    END LOOP;
    FOR v_part IN SELECT conname FROM pg_constraint WHERE conrelid = v_table.rel AND conname ~ '^(customer_(status_is_known|deleted_has_its_time|frozen_has_its_time)|billing_(status_is_known|deleted_has_its_time)|reclaim_adopting_.*)$' LOOP
      kind := 'refused'; subject := 'constraint ' || v_part.conname; what := 'Reclaim needs this name'; advice := format('ALTER TABLE %s RENAME CONSTRAINT %I TO another name', relation, v_part.conname);
      RETURN NEXT;
    END LOOP;
    FOR v_part IN SELECT oid::regclass AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname = ANY (CASE v_table.name
        WHEN 'billing_accounts' THEN ARRAY['billing_by_customer'] ELSE ARRAY['customer_by_owner', 'customer_by_status', 'customer_by_layer', 'customer_by_change',
          'customer_by_effective_date', 'customer_held', 'customer_by_name', 'customer_by_email'] END) LOOP
      kind := 'refused'; subject := v_part.name::text; what := 'Reclaim needs this name for an index'; advice := 'rename it';
      RETURN NEXT;
    END LOOP;
    FOR v_part IN SELECT i.indexrelid::regclass AS name, pg_get_expr(i.indpred, i.indrelid) AS predicate, EXISTS (SELECT FROM pg_attribute a
        WHERE a.attrelid = i.indrelid AND a.attname = ANY (v_retyped) AND (a.attnum = ANY (i.indkey) OR pg_get_indexdef(i.indexrelid) ~ ('\m' || a.attname || '\M'))) AS retyped
      FROM pg_index i WHERE i.indrelid = v_table.rel LOOP
      IF v_part.predicate ~ '^\(tm_delete (=|>=|>) ''[^'']*''::timestamp[a-z ()0-9]*\)$' THEN
        kind := 'change'; subject := 'index ' || v_part.name; advice := NULL;
        what := format('made again, beside your writes, on rows WHERE tm_delete IS NULL instead of %s', v_part.predicate);
        RETURN NEXT;
      ELSIF v_part.retyped AND v_part.predicate ~ '::' THEN
        kind := 'refused'; subject := 'index ' || v_part.name; what := format('its predicate %s is on a column whose type changes', v_part.predicate);
        advice := format('DROP INDEX %s, and create it again after the adoption', v_part.name);
        RETURN NEXT;
      ELSIF v_part.retyped THEN
        v_lock := v_lock + v_table.rows / 1000;
        kind := CASE WHEN v_table.rows > 800000 THEN 'refused' ELSE 'change' END; subject := 'index ' || v_part.name;
        what := format('built anew with its column''s type, under an exclusive lock of about %s ms', v_table.rows / 1000);
        advice := CASE WHEN v_table.rows > 800000 THEN format('DROP INDEX CONCURRENTLY %s, and create it again after the adoption', v_part.name) END;
        RETURN NEXT;
      END IF;
    END LOOP;
    FOR v_part IN
      SELECT DISTINCT v.oid::regclass AS name, v.relkind, v.relowner, EXISTS (SELECT FROM pg_trigger WHERE tgrelid = v.oid) OR EXISTS (SELECT FROM pg_rewrite w
          WHERE w.ev_class = v.oid AND w.rulename <> '_RETURN') AS has_more,
          EXISTS (SELECT FROM pg_depend e JOIN pg_attribute a ON a.attrelid = e.refobjid AND a.attnum = e.refobjsubid
            WHERE e.classid = 'pg_rewrite'::regclass AND e.objid = r.oid AND e.refobjid = v_table.rel AND a.attname = ANY (v_retyped)) AS retyped
        FROM pg_depend d JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid JOIN pg_class v ON v.oid = r.ev_class
        WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = v_table.rel AND v.oid <> v_table.rel
    LOOP
      subject := 'view ' || v_part.name; advice := NULL;
      IF NOT v_part.retyped THEN
        kind := 'note'; what := 'it stays as it is';
      ELSIF v_part.relkind = 'm' OR v_part.has_more THEN
        kind := 'refused'; what := format('it is a %s and shows a column whose type changes', CASE WHEN v_part.relkind = 'm' THEN 'materialized view' ELSE 'view with triggers or rules' END);
        advice := 'drop it, and create it again after the adoption';
      ELSIF NOT pg_has_role(v_part.relowner, 'USAGE') THEN
        kind := 'refused'; what := 'it belongs to another role and shows a column whose type changes'; advice := format('ALTER VIEW %s OWNER TO %s', v_part.name, current_user);
      ELSE
        kind := 'change'; what := 'made again in the same transaction: it shows a column whose type changes';
      END IF;
      RETURN NEXT;
    END LOOP;
    FOR v_part IN SELECT tgname FROM pg_trigger WHERE tgrelid = v_table.rel AND NOT tgisinternal AND tgtype & 16 = 16 LOOP
      kind := 'note'; subject := 'trigger ' || v_part.tgname; what := 'it fires for every row that the adoption changes'; advice := NULL;
      RETURN NEXT;
    END LOOP;

    -- Balances.
    IF v_table.name = 'billing_accounts' THEN
      FOR v_part IN SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS type FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
          WHERE a.attrelid = v_table.rel AND a.attnum > 0 AND NOT a.attisdropped AND a.attname ~ 'balance|credit|funds' AND a.attname <> 'balance_micros'
            AND t.typcategory = 'N' AND a.attname <> coalesce(split_part(p_balance, ':', 1), '') LOOP
        kind := 'note'; subject := 'column ' || v_part.attname; what := format('%s: balances in this column are not taken over', v_part.type);
        advice := format('reclaim migrate --balance %s[:micros|cents]', v_part.attname);
        RETURN NEXT;
      END LOOP;
      IF p_balance IS NOT NULL THEN
        subject := 'column ' || split_part(p_balance, ':', 1); advice := NULL;
        IF NOT EXISTS (SELECT FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = v_table.rel AND NOT a.attisdropped
            AND a.attname = split_part(p_balance, ':', 1) AND t.typcategory = 'N') THEN
          kind := 'refused'; what := 'there is no column of this name that holds numbers'; advice := 'name another with --balance';
        ELSE
          kind := 'change'; what := 'its values become balance_micros; the column stays, and is not read afterwards';
        END IF;
        RETURN NEXT;
      END IF;
    END IF;

    -- In all.
    kind := 'change'; subject := 'table'; advice := NULL; lock_ms := v_lock;
    what := format('about %s rows: exclusive locks of %s ms at most for columns and constraints, row locks of 300 ms for batches; about %s s in all',
      v_table.rows, v_lock, 1 + v_table.rows / 12000);
    RETURN NEXT;
  END LOOP;

  FOREACH v_text IN ARRAY ARRAY['customer_customers', 'billing_accounts'] LOOP
    IF to_regclass('reclaim.' || v_text) IS NOT NULL THEN
      EXECUTE format('SELECT count(*) FROM (SELECT FROM reclaim.%I LIMIT 50001) AS some_rows', v_text) INTO v_count;
      relation := 'reclaim.' || v_text; subject := 'table'; lock_ms := v_count / 20 + 100;
      kind := CASE WHEN v_count > 50000 THEN 'refused' ELSE 'change' END;
      what := format('adopted in one transaction, locked for about %s ms', lock_ms);
      advice := CASE WHEN v_count > 50000 THEN format('ALTER TABLE %s SET SCHEMA public: there it is adopted in batches', relation) END;
      RETURN NEXT;
    END IF;
  END LOOP;
END
$$;
