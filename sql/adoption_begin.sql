-- The first change of the tables that step 0022 adopts: types, indexes, views, columns, in one short transaction. Made for the session that
-- runs the step, behind sql/adoption_shared.sql.

-- What changes in the columns of a table: those that Reclaim has, beside the team's.
CREATE OR REPLACE FUNCTION pg_temp.adopt_differences(p_name text)
RETURNS TABLE (name name, type text, required boolean, preset text, there boolean, had_type text, had_required boolean, had_preset text,
  had_kind "char", fixed boolean, becomes text)
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  -- Times without a zone were written by programs that meant UTC: with that zone set PostgreSQL keeps the table as it is. The others
  -- are written anew; sql/adoption_check.sql refuses them on large tables.
  SELECT m.attname, format_type(m.atttypid, m.atttypmod), m.attnotnull, pg_get_expr(md.adbin, md.adrelid), t.attnum IS NOT NULL,
      format_type(t.atttypid, t.atttypmod), t.attnotnull, pg_get_expr(td.adbin, td.adrelid), y.typcategory,
      coalesce(t.attidentity, '') <> '' OR coalesce(t.attgenerated, '') <> '',
      CASE WHEN m.atttypid = 'timestamptz'::regtype AND t.atttypid = 'timestamp'::regtype THEN ''
        WHEN m.atttypid = 'uuid'::regtype AND y.typcategory = 'S' THEN format(' USING nullif(%I::text, '''')::uuid', m.attname)
        WHEN m.attname = 'status' AND y.typcategory = 'E' THEN format(' USING %I::text', m.attname) END
    FROM pg_attribute m LEFT JOIN pg_attrdef md ON md.adrelid = m.attrelid AND md.adnum = m.attnum
    LEFT JOIN pg_attribute t ON t.attrelid = format('public.%I', p_name)::regclass AND t.attname = m.attname AND NOT t.attisdropped
    LEFT JOIN pg_type y ON y.oid = t.atttypid LEFT JOIN pg_attrdef td ON td.adrelid = t.attrelid AND td.adnum = t.attnum
    WHERE m.attrelid = format('reclaim.%I', p_name)::regclass AND m.attnum > 0 AND NOT m.attisdropped ORDER BY m.attnum
$$;

-- Notes how a column that may be null from now on gets its NOT NULL again, and rows that are not deleted their sentinel.
CREATE OR REPLACE FUNCTION pg_temp.adopt_undo_null(p_name text, p_column text, p_required boolean, p_fill text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
DECLARE
  v_sentinel timestamptz := (SELECT sentinels[1] FROM reclaim.adoption_plan WHERE name = p_name AND p_column = 'tm_delete');
BEGIN
  IF p_required THEN
    PERFORM reclaim.adopt_undo(format('ALTER TABLE public.%I ALTER COLUMN %I SET NOT NULL', p_name, p_column));
  END IF;
  IF v_sentinel IS NOT NULL OR p_required AND p_fill IS NOT NULL THEN
    PERFORM reclaim.adopt_undo(format('UPDATE public.%I SET %I = %s WHERE %2$I IS NULL', p_name, p_column, coalesce(quote_literal(v_sentinel), p_fill)));
  END IF;
END
$$;

-- Indexes by the sentinel (pg_temp.adopt_index_plan). Where tm_delete has its type already, their successors are there by now, and take
-- their names; the others are made by pg_temp.adopt_make_indexes.
CREATE OR REPLACE FUNCTION pg_temp.adopt_drop_indexes(p_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
DECLARE
  v_table regclass := format('public.%I', p_name)::regclass;
  v_index record;
  v_successor regclass;
BEGIN
  FOR v_index IN SELECT p.*, pg_get_indexdef(p.index) AS definition, pg_get_constraintdef(c.oid) AS constraint_definition,
      'reclaim_adopting_' || p.index::oid AS successor,
      obj_description(p.index, 'pg_class') AS comment, obj_description(c.oid, 'pg_constraint') AS constraint_comment
    FROM pg_temp.adopt_index_plan(v_table, (SELECT sentinels FROM reclaim.adoption_plan WHERE name = p_name)) p
    LEFT JOIN pg_constraint c ON c.conrelid = v_table AND c.conname = p.constraint_name WHERE p.refused IS NULL
  LOOP
    PERFORM reclaim.adopt_undo(CASE WHEN v_index.constraint_name IS NULL THEN v_index.definition
        ELSE format('ALTER TABLE %s ADD CONSTRAINT %I %s', v_table, v_index.constraint_name, v_index.constraint_definition) END
      || coalesce(format('; COMMENT ON INDEX public.%I IS ', v_index.index_name) || quote_literal(v_index.comment), '')
      || coalesce(format('; COMMENT ON CONSTRAINT %I ON %s IS ', v_index.constraint_name, v_table) || quote_literal(v_index.constraint_comment), ''));
    EXECUTE CASE WHEN v_index.constraint_name IS NULL THEN format('DROP INDEX public.%I', v_index.index_name)
      ELSE format('ALTER TABLE %s DROP CONSTRAINT %I', v_table, v_index.constraint_name) END;
    v_successor := to_regclass(format('public.%I', v_index.successor));
    IF v_successor IS NOT NULL THEN
      EXECUTE format('ALTER INDEX %s RENAME TO %I', v_successor, v_index.index_name);
    END IF;
    INSERT INTO reclaim.adoption_index (name, definition, index_name, comment)
      VALUES (p_name, CASE WHEN v_successor IS NULL THEN format('CREATE %sINDEX %I%s', CASE WHEN v_index.is_unique THEN 'UNIQUE ' ELSE '' END, v_index.index_name,
        regexp_replace(v_index.tail, 'timestamp(\(\d\))? without time zone', 'timestamp\1 with time zone', 'g')) END,
        v_index.index_name, coalesce(v_index.constraint_comment, v_index.comment));
  END LOOP;
END
$$;

-- A unique index is made at once: with duplicates that came meanwhile it could never be. The others follow beside the team's writes.
CREATE OR REPLACE FUNCTION pg_temp.adopt_make_indexes(p_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
DECLARE
  v_index record;
BEGIN
  FOR v_index IN SELECT * FROM reclaim.adoption_index WHERE name = p_name LOOP
    PERFORM reclaim.adopt_undo(format('DROP INDEX IF EXISTS public.%I', v_index.index_name));
    IF v_index.definition LIKE 'CREATE UNIQUE %' THEN
      EXECUTE v_index.definition;
    END IF;
    IF to_regclass(format('public.%I', v_index.index_name)) IS NOT NULL THEN
      EXECUTE format('COMMENT ON INDEX public.%I IS %L', v_index.index_name, v_index.comment);
    END IF;
  END LOOP;
END
$$;

-- Types of both tables at once: views may show columns of both, and foreign keys between them go and come back. These are enforced for
-- new rows at once, and validated later.
CREATE OR REPLACE FUNCTION pg_temp.adopt_retype(p_names text[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
DECLARE
  v_name text;
  v_column record;
  v_key record;
  v_columns text[];
  v_change text[];
  v_back text[];
  v_changes jsonb := '[]';
  v_reverse jsonb := '[]';
  v_keys text[] := '{}';
BEGIN
  FOR v_key IN SELECT f.oid, f.conrelid::regclass AS rel, f.conname, pg_get_constraintdef(f.oid) AS definition, f.convalidated,
      coalesce(format('; COMMENT ON CONSTRAINT %I ON %s IS ', f.conname, f.conrelid::regclass) || quote_literal(obj_description(f.oid, 'pg_constraint')), '') AS comment
    FROM unnest(p_names) AS n JOIN pg_constraint f ON f.conrelid = format('public.%I', n)::regclass
    JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = f.conkey[1]
    WHERE f.contype = 'f' AND cardinality(f.conkey) = 1 AND f.confrelid = ANY (SELECT format('public.%I', one)::regclass FROM unnest(p_names) AS one)
      AND EXISTS (SELECT FROM pg_temp.adopt_differences(n) AS d WHERE d.name = a.attname AND d.becomes IS NOT NULL)
  LOOP
    PERFORM reclaim.adopt_undo(format('ALTER TABLE %s ADD CONSTRAINT %I %s', v_key.rel, v_key.conname, v_key.definition) || v_key.comment);
    EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', v_key.rel, v_key.conname);
    v_keys := v_keys || (format('ALTER TABLE %s ADD CONSTRAINT %I %s NOT VALID', v_key.rel, v_key.conname, regexp_replace(v_key.definition, ' NOT VALID$', '')) || v_key.comment)
      || format('SELECT reclaim.adopt_undo(%L)', format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS %I', v_key.rel, v_key.conname));
    INSERT INTO reclaim.adoption_key SELECT v_key.rel, v_key.conname WHERE v_key.convalidated;
  END LOOP;
  FOREACH v_name IN ARRAY p_names LOOP
    v_columns := '{}'; v_change := '{}'; v_back := '{}';
    FOR v_column IN SELECT * FROM pg_temp.adopt_differences(v_name) AS d WHERE d.becomes IS NOT NULL AND NOT d.fixed LOOP
      v_columns := v_columns || v_column.name::text;
      IF v_column.had_required AND NOT v_column.required AND v_column.preset IS NULL THEN
        v_change := v_change || format('ALTER COLUMN %I DROP NOT NULL', v_column.name);
      END IF;
      v_change := v_change || format('ALTER COLUMN %I DROP DEFAULT', v_column.name) || format('ALTER COLUMN %I TYPE %s%s', v_column.name, v_column.type, v_column.becomes);
      v_back := v_back || format('ALTER COLUMN %I DROP DEFAULT', v_column.name) || format('ALTER COLUMN %I TYPE %s%s', v_column.name, v_column.had_type,
        CASE WHEN v_column.becomes <> '' THEN format(' USING %I::text::%s', v_column.name, v_column.had_type) ELSE '' END);
      PERFORM pg_temp.adopt_undo_null(v_name, v_column.name, v_column.had_required AND NOT v_column.required AND v_column.preset IS NULL,
        CASE WHEN v_column.had_preset IS NOT NULL THEN 'DEFAULT' WHEN v_column.had_kind = 'S' THEN '''''' END);
      IF v_column.had_preset IS NOT NULL THEN
        PERFORM reclaim.adopt_undo(format('ALTER TABLE public.%I ALTER COLUMN %I SET DEFAULT %s', v_name, v_column.name, v_column.had_preset));
      END IF;
    END LOOP;
    IF v_columns <> '{}' THEN
      v_changes := v_changes || jsonb_build_object('table', format('public.%I', v_name), 'columns', v_columns, 'change', array_to_string(v_change, ', '));
      v_reverse := v_reverse || jsonb_build_object('table', format('public.%I', v_name), 'columns', v_columns, 'change', array_to_string(v_back, ', '));
    END IF;
  END LOOP;
  IF v_changes <> '[]' THEN
    PERFORM reclaim.adopt_undo(format('SELECT reclaim.adopt_alter(%L, %L)', v_reverse, reclaim.adopt_alter(v_changes, '{}')));
  END IF;
  FOREACH v_name IN ARRAY v_keys LOOP
    EXECUTE v_name;
  END LOOP;
END
$$;

-- Columns, defaults, and the trigger. Defaults that differ from row to row are added as the constant that they are now, so that
-- PostgreSQL does not write the table anew.
CREATE OR REPLACE FUNCTION pg_temp.adopt_columns(p_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
DECLARE
  v_table regclass := format('public.%I', p_name)::regclass;
  v_column record;
  v_now text;
  v_alter text[] := '{}';
BEGIN
  FOR v_column IN SELECT * FROM pg_temp.adopt_differences(p_name) LOOP
    IF NOT v_column.there THEN
      EXECUTE format('SELECT quote_nullable((%s)::text)', coalesce(v_column.preset, 'NULL')) INTO v_now;
      PERFORM reclaim.adopt_undo(format('ALTER TABLE %s DROP COLUMN IF EXISTS %I', v_table, v_column.name));
      v_alter := v_alter || format('ADD COLUMN %I %s%s%s', v_column.name, v_column.type,
        CASE WHEN v_now <> 'NULL' THEN format(' DEFAULT %s::%s', v_now, v_column.type) ELSE '' END,
        CASE WHEN v_column.required AND v_now <> 'NULL' THEN ' NOT NULL' ELSE '' END);
      INSERT INTO reclaim.adopted_columns VALUES (v_table::text, v_column.name);
    ELSIF NOT v_column.fixed AND (v_column.name <> 'id' OR v_column.had_preset IS NULL) THEN
      PERFORM pg_temp.adopt_undo_null(p_name, v_column.name, v_column.preset IS NULL AND NOT v_column.required AND v_column.had_required,
        CASE WHEN v_column.had_preset IS NOT NULL THEN 'DEFAULT' END);
      IF v_column.preset IS NULL AND NOT v_column.required AND v_column.had_required THEN
        v_alter := v_alter || format('ALTER COLUMN %I DROP NOT NULL', v_column.name);
      END IF;
      IF v_column.had_preset IS NOT NULL AND NOT (v_column.required AND v_column.preset IS NULL) THEN
        PERFORM reclaim.adopt_undo(format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', v_table, v_column.name, v_column.had_preset));
      ELSIF v_column.preset IS NOT NULL THEN
        PERFORM reclaim.adopt_undo(format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT', v_table, v_column.name));
      END IF;
    ELSE
      CONTINUE;
    END IF;
    IF v_column.preset IS NOT NULL THEN
      v_alter := v_alter || format('ALTER COLUMN %I SET DEFAULT %s', v_column.name, v_column.preset);
    ELSIF v_column.had_preset IS NOT NULL AND NOT v_column.required THEN
      v_alter := v_alter || format('ALTER COLUMN %I DROP DEFAULT', v_column.name);
    END IF;
  END LOOP;
  IF v_alter <> '{}' THEN
    EXECUTE format('ALTER TABLE %s %s', v_table, array_to_string(v_alter, ', '));
  END IF;

  IF p_name = 'billing_accounts' THEN
    PERFORM reclaim.adopt_account_function((SELECT balance FROM reclaim.adoption WHERE name = p_name));
  END IF;
  EXECUTE format('CREATE TRIGGER zz_reclaim_adopting BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION reclaim.%I()', v_table,
    CASE p_name WHEN 'billing_accounts' THEN 'adopting_account' ELSE 'adopting_customer' END);
  UPDATE reclaim.adoption SET filenode = pg_relation_filenode(v_table),
    blocks = pg_relation_size(v_table) / current_setting('block_size')::bigint WHERE name = p_name;
END
$$;

-- The first change of the tables, short: others wait for both locks and the work, which stays below a second.
CREATE OR REPLACE FUNCTION pg_temp.adopt_begin(p_names text[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
DECLARE
  v_name text;
  v_view record;
BEGIN
  FOREACH v_name IN ARRAY p_names LOOP
    INSERT INTO reclaim.adoption (name, before, balance, filenode, blocks)
      SELECT v_name, ARRAY(SELECT reclaim.adopt_shape(format('public.%I', v_name)::regclass)),
        CASE WHEN p.balance IS NOT NULL THEN format('pg_catalog.round((NEW.%I)::numeric * %s)::bigint', split_part(p.balance, ':', 1),
          CASE split_part(p.balance, ':', 2) WHEN 'micros' THEN '1' WHEN 'cents' THEN '10000' ELSE '1000000' END) END, 0, 0
      FROM reclaim.adoption_plan p WHERE p.name = v_name;
  END LOOP;
  FOREACH v_name IN ARRAY p_names LOOP
    PERFORM set_config('lock_timeout', CASE WHEN v_name = p_names[1] THEN '300ms' ELSE '150ms' END, true);
    EXECUTE format('LOCK TABLE public.%I IN ACCESS EXCLUSIVE MODE', v_name);
  END LOOP;
  FOREACH v_name IN ARRAY p_names LOOP
    PERFORM pg_temp.adopt_drop_indexes(v_name);
  END LOOP;
  PERFORM pg_temp.adopt_retype(p_names);
  FOREACH v_name IN ARRAY p_names LOOP
    PERFORM pg_temp.adopt_make_indexes(v_name);
  END LOOP;
  FOR v_view IN SELECT w.* FROM (SELECT array_agg(DISTINCT format('public.%I', name)::regclass) AS tables, array_agg(one) AS sentinels
        FROM reclaim.adoption_plan CROSS JOIN unnest(sentinels) AS one WHERE name = ANY (p_names)) AS p CROSS JOIN LATERAL pg_temp.adopt_view_plan(p.tables, p.sentinels) AS w
      WHERE w.relkind = 'v' AND w.again <> w.definition LOOP
    PERFORM reclaim.adopt_undo(format('SELECT reclaim.adopt_view(%L, %L, %L)', v_view.view,
      reclaim.adopt_view(v_view.view::text, v_view.definition, v_view.again), v_view.definition));
  END LOOP;
  FOREACH v_name IN ARRAY p_names LOOP
    PERFORM pg_temp.adopt_columns(v_name);
  END LOOP;
END
$$;
