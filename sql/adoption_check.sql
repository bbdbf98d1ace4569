-- What adopting the team's tables in schema public would do, and what stops it. Runs in a transaction that is rolled back, behind
-- sql/adoption_shared.sql and sql/adoption_dependants.sql, on a database where the adoption has not ended: `reclaim migrate` asks it
-- before it changes anything, `reclaim migrate --check` prints it. Times are estimated from the number of rows.

-- Columns of Reclaim's: `needed` may not be null, `nulls` says that NOT NULL goes, since null means something there.
CREATE FUNCTION pg_temp.adoption_wanted(p_name text) RETURNS TABLE (name text, wants text, nulls boolean)
LANGUAGE sql
AS $$
  SELECT v.name, v.wants, v.nulls FROM (VALUES ('customer_customers', 'id', 'uuid', false), ('customer_customers', 'name', 'text', false),
      ('customer_customers', 'detail', 'text', false), ('customer_customers', 'email', 'text', false), ('customer_customers', 'phone_number', 'text', false),
      ('customer_customers', 'address', 'text', false), ('customer_customers', 'webhook_method', 'text', false), ('customer_customers', 'webhook_uri', 'text', false),
      ('customer_customers', 'billing_account_id', 'uuid', true), ('customer_customers', 'status', 'text', false),
      ('customer_customers', 'tm_deletion_scheduled', 'timestamptz', true), ('customer_customers', 'tm_create', 'timestamptz', false),
      ('customer_customers', 'tm_update', 'timestamptz', true), ('customer_customers', 'tm_delete', 'timestamptz', true),
      ('customer_customers', 'owner_user_id', 'uuid', true), ('customer_customers', 'version', 'bigint', false),
      ('customer_customers', 'frozen_api_at', 'timestamptz', true), ('customer_customers', 'frozen_calls_at', 'timestamptz', true),
      ('customer_customers', 'frozen_billing_at', 'timestamptz', true), ('customer_customers', 'hold_reason', 'text', true),
      ('customer_customers', 'hold_at', 'timestamptz', true), ('customer_customers', 'changed_xid', 'xid8', false),
      ('customer_customers', 'deletion_effective_at', 'timestamptz', true), ('customer_customers', 'frozen_by', 'text', true),
      ('customer_customers', 'freeze_reason', 'text', true), ('billing_accounts', 'id', 'uuid', false), ('billing_accounts', 'customer_id', 'uuid', false),
      ('billing_accounts', 'name', 'text', false), ('billing_accounts', 'status', 'text', false), ('billing_accounts', 'hold_reasons', 'text[]', false),
      ('billing_accounts', 'balance_micros', 'bigint', false), ('billing_accounts', 'tm_create', 'timestamptz', false),
      ('billing_accounts', 'tm_update', 'timestamptz', true), ('billing_accounts', 'tm_delete', 'timestamptz', true)) AS v (relname, name, wants, nulls)
    WHERE v.relname = p_name
$$;

-- Columns whose types change, with the new ones.
CREATE FUNCTION pg_temp.adoption_retyped(p_table regclass, p_name text) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT coalesce(jsonb_object_agg(w.name, w.wants), '{}') FROM pg_temp.adoption_wanted(p_name) AS w JOIN pg_attribute a ON a.attrelid = p_table AND a.attname = w.name AND NOT a.attisdropped
    JOIN pg_type t ON t.oid = a.atttypid WHERE a.attgenerated = '' AND a.attidentity = ''
    AND (w.wants = 'timestamptz' AND a.atttypid = 'timestamp'::regtype OR w.wants = 'uuid' AND t.typcategory = 'S' OR w.name = 'status' AND t.typcategory = 'E')
$$;

-- The rows of a table, without statistics, which may be of the time before it was filled: counted, or estimated from some of its blocks.
CREATE FUNCTION pg_temp.adoption_rows(p_table regclass) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_blocks bigint := pg_relation_size(p_table) / current_setting('block_size')::bigint;
  v_rows bigint;
BEGIN
  EXECUTE format('SELECT count(*) FROM %s %s', p_table, CASE WHEN v_blocks > 2000 THEN format('TABLESAMPLE SYSTEM (%s)', 100000.0 / v_blocks) ELSE '' END) INTO v_rows;
  RETURN CASE WHEN v_blocks > 2000 THEN v_rows * v_blocks / 1000 ELSE v_rows END;
END
$$;

CREATE FUNCTION pg_temp.adoption_columns(p_table regclass, p_name text, p_rows bigint, p_rewritten bigint, p_tables regclass[])
RETURNS TABLE (kind text, relation text, subject text, what text, advice text, lock_ms bigint)
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_part record;
  v_count bigint;
  v_empty bigint;
  v_type text;
  v_added text[] := '{}';
BEGIN
  relation := p_table::text;
  FOR v_part IN
    SELECT w.*, a.attname IS NOT NULL AS there, format_type(a.atttypid, a.atttypmod) AS type, a.atttypid, a.atttypmod, a.attnum, a.attnotnull, t.typcategory, a.attgenerated, a.attidentity,
        EXISTS (SELECT FROM pg_index i WHERE i.indrelid = p_table AND (i.indisprimary OR i.indisreplident) AND a.attnum = ANY (i.indkey)) AS is_key
      FROM pg_temp.adoption_wanted(p_name) AS w
      LEFT JOIN pg_attribute a ON a.attrelid = p_table AND a.attname = w.name AND NOT a.attisdropped LEFT JOIN pg_type t ON t.oid = a.atttypid
  LOOP
    kind := 'refused'; subject := 'column ' || v_part.name; advice := NULL; what := NULL; lock_ms := NULL;
    IF NOT v_part.there THEN
      IF v_part.name = 'id' OR v_part.name = 'customer_id' AND p_rows > 0 THEN
        what := 'the table has no such column'; advice := 'add it, of type uuid, with a value in every row';
      ELSE
        v_added := v_added || v_part.name;
      END IF;
    ELSIF v_part.attgenerated <> '' OR v_part.attidentity <> '' THEN
      what := 'it is generated, and Reclaim must be able to write it'; advice := format('ALTER TABLE %s ALTER COLUMN %I DROP EXPRESSION (or DROP IDENTITY), or rename it', relation, v_part.name);
    ELSIF v_part.nulls AND v_part.attnotnull AND v_part.is_key THEN
      what := 'it is part of the primary key or of the replica identity, and must be able to be null'; advice := 'make the primary key of id alone';
    ELSIF v_part.wants = 'timestamptz' AND v_part.atttypid = 'timestamp'::regtype THEN
      kind := 'change'; what := format('%s becomes timestamptz, as UTC; the table is not written anew', v_part.type);
    ELSIF v_part.wants = 'uuid' AND v_part.typcategory = 'S' OR v_part.name = 'status' AND v_part.typcategory = 'E' THEN
      v_count := 0; v_empty := 0;
      v_type := CASE WHEN v_part.wants = 'uuid' THEN 'uuid' ELSE 'text' END;
      IF v_type = 'uuid' THEN
        EXECUTE format('SELECT count(*) FILTER (WHERE %I::text <> '''' AND %1$I::text !~* ''^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$''), count(*) FILTER (WHERE %1$I::text = '''') FROM %s',
          v_part.name, p_table) INTO v_count, v_empty;
      END IF;
      IF v_count > 0 OR v_empty > 0 AND v_part.name IN ('id', 'customer_id') THEN
        what := format('it is %s, and %s of its values are no uuids, which Reclaim needs', v_part.type, v_count + v_empty);
        advice := 'give these rows uuids, here and where they are referred to';
      ELSIF EXISTS (SELECT FROM pg_constraint c WHERE c.contype = 'f' AND (c.conrelid = p_table AND v_part.attnum = ANY (c.conkey) OR c.confrelid = p_table AND v_part.attnum = ANY (c.confkey))
          -- Those between the two tables are taken away and added again.
          AND NOT (cardinality(c.conkey) = 1 AND c.conrelid = ANY (p_tables) AND c.confrelid = ANY (p_tables)
            AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.conrelid AND a.attnum = c.conkey[1] AND a.attname IN ('customer_id', 'billing_account_id'))
            AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.confrelid AND a.attnum = c.confkey[1] AND a.attname = 'id'))) THEN
        what := format('it is %s, Reclaim needs %s, and a foreign key holds it to that type', v_part.type, v_type);
        advice := format('drop the foreign keys, change both columns with ALTER TABLE … ALTER COLUMN … TYPE %s USING …::%1$s, and add them again', v_type);
      ELSIF p_rewritten > 150000 THEN
        what := format('it is %s, Reclaim needs %s, and the tables that would be written anew are large: about %s rows', v_part.type, v_type, p_rewritten);
        advice := format('ALTER TABLE %s ALTER COLUMN %I TYPE %s USING %2$I::%3$s at a quiet time: about %s s under an exclusive lock', relation, v_part.name, v_type, 1 + p_rows / 200000);
      ELSE
        lock_ms := p_rows / 200;
        kind := 'change'; what := format('%s becomes %s, under an exclusive lock of about %s ms', v_part.type, v_type, 50 + lock_ms);
        IF v_empty > 0 THEN
          what := what || format('; %s empty values become null', v_empty);
        END IF;
      END IF;
    ELSIF v_part.wants = 'text' AND v_part.typcategory <> 'S' OR v_part.wants <> 'text' AND v_part.atttypid <> to_regtype(v_part.wants) THEN
      what := format('it is %s, Reclaim needs %s', v_part.type, v_part.wants);
      advice := format('change its type to %s, or rename it', v_part.wants);
    ELSIF v_part.name = 'status' AND v_part.atttypmod BETWEEN 5 AND 10 THEN
      what := format('it is %s, and "deleted" has 7 characters', v_part.type);
      advice := format('ALTER TABLE %s ALTER COLUMN status TYPE text', relation);
    END IF;
    IF what IS NOT NULL THEN
      RETURN NEXT;
    END IF;
  END LOOP;
  lock_ms := NULL;
  IF v_added <> '{}' THEN
    kind := 'change'; subject := 'columns'; what := 'added: ' || array_to_string(v_added, ', '); advice := NULL;
    RETURN NEXT;
  END IF;
  IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = p_table AND attname = 'id' AND NOT attisdropped)
      AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = p_table AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indnkeyatts = 1
        AND i.indkey[0] = (SELECT attnum FROM pg_attribute WHERE attrelid = p_table AND attname = 'id')) THEN
    kind := 'refused'; subject := 'column id'; what := 'no unique index is on it'; advice := format('ALTER TABLE %s ADD PRIMARY KEY (id)', relation);
    RETURN NEXT;
  END IF;
  FOR v_part IN SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS type FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
      WHERE a.attrelid = p_table AND a.attnum > 0 AND NOT a.attisdropped AND (a.attnotnull OR t.typnotnull) AND NOT a.atthasdef AND a.attidentity = '' AND t.typdefault IS NULL
        AND a.attname NOT IN (SELECT name FROM pg_temp.adoption_wanted(p_name)) LOOP
    kind := 'note'; subject := 'column ' || v_part.attname; what := format('%s, never null and without a default: Reclaim cannot add rows, only your programs can', v_part.type);
    advice := format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT …, if POST /v1/customers or reclaim customers import shall', relation, v_part.attname);
    RETURN NEXT;
  END LOOP;
END
$$;

-- What the rows say.
CREATE FUNCTION pg_temp.adoption_contents(p_table regclass, p_name text, p_sentinels timestamptz[])
RETURNS TABLE (kind text, relation text, subject text, what text, advice text, lock_ms bigint)
LANGUAGE plpgsql SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
DECLARE
  v_part record;
  v_count bigint;
  v_columns text[] := ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = p_table AND attnum > 0 AND NOT attisdropped);
BEGIN
  relation := p_table::text;
  IF 'status' = ANY (v_columns) THEN
    FOR v_part IN EXECUTE format('SELECT status::text AS label, count(*) AS n FROM %s WHERE status::text <> '''' AND status::text NOT IN (''active'', ''frozen'', ''deleted'') %s GROUP BY 1 ORDER BY 2 DESC LIMIT 10',
        p_table, CASE WHEN EXISTS (SELECT FROM pg_attribute WHERE attrelid = p_table AND attname = 'tm_delete' AND NOT attisdropped AND atttypid IN ('timestamp'::regtype, 'timestamptz'::regtype))
          THEN 'AND (tm_delete IS NULL OR tm_delete NOT BETWEEN ''1970-01-02'' AND now() + interval ''1 year'')' ELSE '' END) LOOP
      kind := 'refused'; subject := 'column status'; what := format('%s rows have status "%s"', v_part.n, v_part.label);
      advice := format('Reclaim knows active, frozen and deleted: give these rows one of them, and keep what "%s" means in a column of your own', v_part.label);
      RETURN NEXT;
    END LOOP;
  END IF;
  IF p_sentinels IS NOT NULL THEN
    kind := 'note'; subject := 'column tm_delete'; what := format('rows that are not deleted have %s in it, which becomes null', array_to_string(p_sentinels, ' or '));
    advice := 'queries of your programs by that time will find nothing: let them say tm_delete IS NULL, or tm_delete IS NULL OR tm_delete > now(), which is right already now';
    RETURN NEXT;
  END IF;
  IF p_name = 'billing_accounts' AND 'customer_id' = ANY (v_columns) THEN
    EXECUTE format('SELECT count(*) FROM %s WHERE customer_id IS NULL', p_table) INTO v_count;
    IF v_count > 0 THEN
      kind := 'refused'; subject := 'column customer_id'; what := format('%s accounts have no customer', v_count);
      advice := 'give them one, or delete them';
      RETURN NEXT;
    END IF;
  END IF;
  IF p_name <> 'customer_customers' THEN
    RETURN;
  END IF;
  IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = p_table AND attname = 'owner_user_id' AND NOT attisdropped AND atttypid = 'uuid'::regtype) THEN
    EXECUTE format('SELECT count(*) FROM (SELECT FROM %s WHERE owner_user_id IS NOT NULL GROUP BY owner_user_id HAVING count(*) > 1) AS several', p_table) INTO v_count;
    IF v_count > 0 THEN
      kind := 'note'; subject := 'column owner_user_id'; what := format('%s users own several customers', v_count);
      advice := 'they choose one with the header X-Reclaim-Customer';
      RETURN NEXT;
    END IF;
  ELSIF NOT 'owner_user_id' = ANY (v_columns) THEN
    kind := 'note'; subject := 'column owner_user_id'; what := 'no customer has an owner after the adoption';
    advice := 'reclaim customers import --owners fills it';
    RETURN NEXT;
  END IF;
END
$$;

-- Names that Reclaim needs, and triggers that will fire.
CREATE FUNCTION pg_temp.adoption_names(p_table regclass, p_name text)
RETURNS TABLE (kind text, relation text, subject text, what text, advice text, lock_ms bigint)
LANGUAGE sql SET search_path = pg_catalog
AS $$
  SELECT 'refused', p_table::text, 'constraint ' || conname, 'Reclaim needs this name', format('ALTER TABLE %s RENAME CONSTRAINT %I TO another name', p_table, conname), NULL::bigint
    FROM pg_constraint WHERE conrelid = p_table AND conname ~ '^(customer_(status_is_known|deleted_has_its_time|frozen_has_its_time)|billing_(status_is_known|deleted_has_its_time)|reclaim_adopting_.*)$'
  UNION ALL
  SELECT 'refused', p_table::text, oid::regclass::text, 'Reclaim needs this name for an index', 'rename it', NULL FROM pg_class WHERE relnamespace = 'public'::regnamespace
    AND relname = ANY (CASE p_name WHEN 'billing_accounts' THEN ARRAY['billing_by_customer'] ELSE ARRAY['customer_by_owner', 'customer_by_status', 'customer_by_layer',
      'customer_by_change', 'customer_by_effective_date', 'customer_held', 'customer_by_name', 'customer_by_email'] END)
  UNION ALL
  SELECT 'note', p_table::text, 'trigger ' || tgname, 'it fires for every row that the adoption changes', NULL, NULL
    FROM pg_trigger WHERE tgrelid = p_table AND NOT tgisinternal AND tgtype & 16 = 16
$$;

CREATE FUNCTION pg_temp.adoption_balances(p_table regclass, p_balance text)
RETURNS TABLE (kind text, relation text, subject text, what text, advice text, lock_ms bigint)
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_column text := split_part(p_balance, ':', 1);
  v_part record;
BEGIN
  relation := p_table::text;
  FOR v_part IN SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS type FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
      WHERE a.attrelid = p_table AND a.attnum > 0 AND NOT a.attisdropped AND a.attname ~ 'balance|credit|funds' AND a.attname <> 'balance_micros'
        AND t.typcategory = 'N' AND a.attname <> coalesce(v_column, '') LOOP
    kind := 'note'; subject := 'column ' || v_part.attname; what := format('%s: balances in this column are not taken over', v_part.type);
    advice := format('reclaim migrate --balance %s[:micros|cents]', v_part.attname);
    RETURN NEXT;
  END LOOP;
  IF p_balance IS NOT NULL THEN
    subject := 'column ' || v_column; advice := NULL; kind := 'change';
    what := 'its values become balance_micros; the column stays, and is not read afterwards';
    IF NOT EXISTS (SELECT FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = p_table AND NOT a.attisdropped
        AND a.attname = v_column AND t.typcategory = 'N' AND pg_temp.adoption_refuses(format('SELECT 1::%s::numeric', format_type(a.atttypid, a.atttypmod)), true) IS NULL) THEN
      kind := 'refused'; what := 'there is no column of this name that holds numbers'; advice := 'name another with --balance';
    END IF;
    RETURN NEXT;
  END IF;
END
$$;

-- All of it. Tables that step 0011 marked and step 0022 has not begun with are looked at again: the team may have changed them.
CREATE FUNCTION pg_temp.adoption_findings(p_balance text)
RETURNS TABLE (kind text, relation text, subject text, what text, advice text, lock_ms bigint)
LANGUAGE plpgsql SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
DECLARE
  v_table record;
  v_count bigint;
  v_text text;
  v_marked text[] := '{}';
  v_begun text[] := '{}';
  v_balance text;
  v_tables regclass[] := '{}';
  v_retyped jsonb := '{}';
  v_rows jsonb := '{}';
  v_sentinels jsonb := '{}';
  v_rewritten bigint := 0;
BEGIN
  IF to_regclass('reclaim.adopted_columns') IS NOT NULL THEN
    EXECUTE 'SELECT coalesce(array_agg(substr(relation, 8)), ''{}'') FROM reclaim.adopted_columns WHERE column_name = '''' AND relation LIKE ''public.%''' INTO v_marked;
  END IF;
  IF to_regclass('reclaim.adoption') IS NOT NULL THEN
    EXECUTE 'SELECT coalesce(array_agg(name), ''{}'') FROM reclaim.adoption' INTO v_begun;
  END IF;
  IF to_regclass('reclaim.adoption_plan') IS NOT NULL THEN
    EXECUTE 'SELECT max(balance) FROM reclaim.adoption_plan' INTO v_balance;
  END IF;
  FOREACH v_text IN ARRAY v_begun LOOP
    kind := 'note'; relation := 'public.' || v_text; subject := 'table'; lock_ms := NULL;
    what := 'its adoption has begun'; advice := 'go on with reclaim migrate, or take it back with reclaim migrate --down 1';
    RETURN NEXT;
  END LOOP;

  FOR v_table IN
    SELECT c.oid::regclass AS rel, c.relname::text AS name, c.relkind, c.relowner, c.relrowsecurity AND c.relforcerowsecurity AS forced
      FROM pg_class c WHERE c.oid IN (to_regclass('public.customer_customers'), to_regclass('public.billing_accounts'))
        AND (to_regclass('reclaim.' || c.relname) IS NULL OR c.relname = ANY (v_marked)) AND NOT c.relname = ANY (v_begun)
      ORDER BY c.relname DESC
  LOOP
    relation := v_table.rel::text; subject := 'table'; kind := 'refused'; what := NULL;
    IF v_table.relkind <> 'r' THEN
      what := format('it is a %s', CASE v_table.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'p' THEN 'partitioned table' ELSE 'foreign table' END);
      advice := 'Reclaim adopts plain tables: rename it, and give Reclaim a table of this name, or none';
    ELSIF NOT pg_has_role(v_table.relowner, 'USAGE') THEN
      what := format('it belongs to %s, and %s is no member of that role', v_table.relowner::regrole, current_user);
      advice := format('GRANT %s TO %s, or migrate as %1$s', v_table.relowner::regrole, current_user);
    ELSIF v_table.forced AND NOT (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user) THEN
      what := 'row security is forced, so that not all rows can be seen';
      advice := format('migrate as a role with BYPASSRLS, or ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', relation);
    END IF;
    IF what IS NOT NULL THEN
      RETURN NEXT; CONTINUE;
    END IF;
    v_tables := v_tables || v_table.rel;
    v_retyped := v_retyped || jsonb_build_object(relation, pg_temp.adoption_retyped(v_table.rel, v_table.name));
    v_rows := v_rows || jsonb_build_object(relation, pg_temp.adoption_rows(v_table.rel));
    v_sentinels := v_sentinels || jsonb_build_object(relation, to_jsonb(pg_temp.adopt_sentinels(v_table.rel)));
    IF EXISTS (SELECT FROM jsonb_each_text(v_retyped->relation) WHERE value <> 'timestamptz') THEN
      v_rewritten := v_rewritten + (v_rows->>relation)::bigint;
    END IF;
    PERFORM pg_temp.adoption_clone(v_table.rel, v_table.name, v_retyped->relation);
  END LOOP;

  CREATE TEMP TABLE adoption_found (kind text, relation text, subject text, what text, advice text, lock_ms bigint);
  FOR v_table IN SELECT one AS rel, one::text AS called, c.relname::text AS name, (v_rows->>one::text)::bigint AS rows, (SELECT array_agg(t::timestamptz) FROM jsonb_array_elements_text(nullif(v_sentinels->one::text, 'null')) AS t) AS sentinels,
      ARRAY(SELECT jsonb_object_keys(v_retyped->one::text)) AS retyped FROM unnest(v_tables) AS one JOIN pg_class c ON c.oid = one LOOP
    INSERT INTO pg_temp.adoption_found SELECT * FROM pg_temp.adoption_columns(v_table.rel, v_table.name, v_table.rows, v_rewritten, v_tables)
      UNION ALL SELECT * FROM pg_temp.adoption_contents(v_table.rel, v_table.name, v_table.sentinels)
      UNION ALL SELECT * FROM pg_temp.adoption_checks(v_table.rel, v_table.name)
      UNION ALL SELECT * FROM pg_temp.adoption_names(v_table.rel, v_table.name)
      UNION ALL SELECT * FROM pg_temp.adoption_indexes(v_table.rel, v_table.name, v_table.retyped, v_table.sentinels, v_table.rows)
      UNION ALL SELECT * FROM pg_temp.adoption_others(v_table.rel, v_table.retyped, v_table.sentinels)
      UNION ALL SELECT * FROM pg_temp.adoption_balances(v_table.rel, coalesce(p_balance, v_balance)) WHERE v_table.name = 'billing_accounts';
    v_count := 50 + (SELECT coalesce(sum(f.lock_ms), 0) FROM pg_temp.adoption_found AS f WHERE f.relation = v_table.called AND f.kind = 'change');
    INSERT INTO pg_temp.adoption_found VALUES ('change', v_table.called, 'table',
      format('about %s rows: exclusive locks of %s ms at most for columns and constraints, row locks of 300 ms for batches; about %s s in all', v_table.rows, v_count, 1 + v_table.rows / 12000),
      NULL, v_count);
  END LOOP;
  RETURN QUERY SELECT * FROM pg_temp.adoption_found;
  RETURN QUERY SELECT * FROM pg_temp.adoption_views(v_tables, v_retyped, jsonb_strip_nulls(v_sentinels));

  kind := 'refused'; relation := 'public.billing_accounts'; subject := '--balance'; lock_ms := NULL;
  IF p_balance IS NOT NULL AND 'billing_accounts' = ANY (v_begun) AND p_balance IS DISTINCT FROM v_balance THEN
    what := format('the adoption has begun %s', coalesce('with --balance ' || v_balance, 'without it'));
    advice := 'take it back with reclaim migrate --down 1, and begin again';
    RETURN NEXT;
  ELSIF p_balance IS NOT NULL AND NOT 'billing_accounts' = ANY (v_begun) AND to_regclass('public.billing_accounts') IS NULL THEN
    what := 'there is no such table whose balances could be taken over'; advice := 'leave it out';
    RETURN NEXT;
  END IF;
  FOREACH v_text IN ARRAY ARRAY['customer_customers', 'billing_accounts'] LOOP
    IF to_regclass('reclaim.' || v_text) IS NOT NULL AND to_regclass('reclaim.adopted_columns') IS NULL THEN
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
