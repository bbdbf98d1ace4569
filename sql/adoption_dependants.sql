-- The second half of the check of an adoption (sql/adoption_check.sql): what hangs on columns whose type or meaning changes. The
-- changes are tried on empty temporary tables of the same names, so that what PostgreSQL would refuse is known before.

-- Makes pg_temp.NAME with the types that the columns will have.
CREATE FUNCTION pg_temp.adoption_clone(p_table regclass, p_name text, p_retyped jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog SET timezone = 'UTC' SET client_min_messages = error
AS $$
DECLARE
  v_column record;
BEGIN
  EXECUTE format('CREATE TEMP TABLE %I (LIKE %s)', p_name, p_table);
  FOR v_column IN SELECT key AS name, value AS type FROM jsonb_each_text(p_retyped) LOOP
    EXECUTE format('ALTER TABLE pg_temp.%I ALTER COLUMN %I TYPE %s USING NULL', p_name, v_column.name, v_column.type);
  END LOOP;
END
$$;

-- The definition of a view on the temporary tables.
CREATE FUNCTION pg_temp.adoption_on_clones(p_definition text, p_names text[]) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_name text;
BEGIN
  FOREACH v_name IN ARRAY p_names LOOP
    p_definition := regexp_replace(p_definition, '(?<![\w"$.])' || regexp_replace(v_name, '([^\w])', '\\\1', 'g') || '(?![\w"$])', 'pg_temp.' || regexp_replace(v_name, '^.*?\.', ''), 'g');
  END LOOP;
  RETURN p_definition;
END
$$;

-- Why PostgreSQL refuses a statement; null when it does not. Nothing stays of it when p_keeps is false.
CREATE FUNCTION pg_temp.adoption_refuses(p_statement text, p_keeps boolean) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog SET timezone = 'UTC' SET client_min_messages = error
AS $$
BEGIN
  EXECUTE p_statement;
  IF NOT p_keeps THEN
    RAISE EXCEPTION USING ERRCODE = 'RC001';
  END IF;
  RETURN NULL;
EXCEPTION
  WHEN SQLSTATE 'RC001' THEN RETURN NULL;
  WHEN OTHERS THEN RETURN SQLERRM;
END
$$;

-- Check constraints: of the new types, and of the rows that Reclaim will write.
CREATE FUNCTION pg_temp.adoption_checks(p_table regclass, p_name text)
RETURNS TABLE (kind text, relation text, subject text, what text, advice text, lock_ms bigint)
LANGUAGE plpgsql SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
DECLARE
  v_check record;
  v_state record;
  v_row jsonb;
  v_fits boolean;
BEGIN
  EXECUTE format('SELECT coalesce((SELECT (SELECT jsonb_object_agg(key, value) FROM jsonb_each(to_jsonb(t)) WHERE value <> ''""'' AND value <> ''null'') FROM %s t LIMIT 1), ''{}'')', p_table) INTO v_row;
  v_row := v_row - '{status,tm_delete,tm_deletion_scheduled,hold_reasons}'::text[];
  kind := 'refused'; relation := p_table::text;
  FOR v_check IN SELECT conname, pg_get_constraintdef(oid) AS definition FROM pg_constraint WHERE conrelid = p_table AND contype = 'c' LOOP
    subject := 'constraint ' || v_check.conname; advice := format('ALTER TABLE %s DROP CONSTRAINT %I', p_table, v_check.conname);
    what := pg_temp.adoption_refuses(format('ALTER TABLE pg_temp.%I ADD CONSTRAINT %I %s', p_name, v_check.conname, v_check.definition), true);
    IF what IS NOT NULL THEN
      what := format('with the types that the columns will have, PostgreSQL refuses %s: %s', v_check.definition, what);
      RETURN NEXT; CONTINUE;
    END IF;
    FOR v_state IN SELECT * FROM (VALUES ('active', '{"status": "active"}'::jsonb),
        ('frozen', jsonb_build_object('status', 'frozen', 'tm_deletion_scheduled', now(), 'hold_reasons', '["account_frozen"]'::jsonb)),
        ('deleted', jsonb_build_object('status', 'deleted', 'tm_delete', now()))) AS s (name, columns) WHERE v_check.definition ~ '\m(status|tm_delete|tm_deletion_scheduled|hold_reasons)\M' LOOP
      EXECUTE format('SELECT coalesce(%s, true) FROM (SELECT (jsonb_populate_record(NULL::pg_temp.%I, $1)).*) AS r',
        (SELECT pg_get_expr(conbin, conrelid) FROM pg_constraint WHERE conrelid = format('pg_temp.%I', p_name)::regclass AND conname = v_check.conname), p_name)
        INTO v_fits USING v_row || v_state.columns;
      IF NOT v_fits THEN
        what := CASE WHEN v_state.name = 'active' THEN 'it does not allow rows that are not deleted to have a tm_delete of null: ' ELSE format('it does not allow the status %s: ', v_state.name) END
          || v_check.definition;
        RETURN NEXT; EXIT;
      END IF;
    END LOOP;
  END LOOP;
END
$$;

-- Indexes: by the sentinel, or on columns whose type changes.
CREATE FUNCTION pg_temp.adoption_indexes(p_table regclass, p_name text, p_retyped text[], p_sentinels timestamptz[], p_rows bigint)
RETURNS TABLE (kind text, relation text, subject text, what text, advice text, lock_ms bigint)
LANGUAGE plpgsql SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
DECLARE
  v_index record;
  v_count bigint;
BEGIN
  relation := p_table::text;
  FOR v_index IN SELECT p.*, format('%s %s', CASE WHEN p.constraint_name IS NULL THEN 'index' ELSE 'constraint' END, CASE WHEN p.constraint_name IS NULL THEN p.index::text ELSE p.constraint_name END) AS called
      FROM pg_temp.adopt_index_plan(p_table, p_sentinels) AS p LOOP
    kind := 'refused'; subject := v_index.called; lock_ms := NULL;
    what := v_index.refused;
    advice := 'replace it by a unique index on the other columns WHERE tm_delete IS NULL OR tm_delete = your sentinel; that is carried over';
    IF what IS NULL AND v_index.is_unique THEN
      EXECUTE format('SELECT count(*) FROM (SELECT FROM (SELECT %s CASE WHEN tm_delete BETWEEN ''1970-01-02'' AND now() + interval ''1 year'' THEN tm_delete END AS tm_delete FROM %s) AS later
          WHERE num_nulls(%s) = 0 AND %s GROUP BY %3$s HAVING count(*) > 1) AS several',
        (SELECT string_agg(quote_ident(attname) || ', ', '') FROM pg_attribute WHERE attrelid = p_table AND attnum > 0 AND NOT attisdropped AND attname <> 'tm_delete'),
        p_table, v_index.keys, v_index.predicate) INTO v_count;
      IF v_count > 0 THEN
        what := format('rows that are not deleted, by null or by different sentinels, have the same values of %s: %s times', v_index.keys, v_count);
        advice := 'remove the duplicates';
      ELSIF p_rows > 800000 AND 'tm_delete' = ANY (p_retyped) THEN
        what := 'it would be built anew under an exclusive lock of more than a second';
        advice := format('drop it before the adoption, and create it again after it, on rows WHERE tm_delete IS NULL: meanwhile nothing keeps %s unique. Or change tm_delete to timestamptz before, at a quiet time', v_index.keys);
      END IF;
    END IF;
    IF what IS NULL THEN
      what := pg_temp.adoption_refuses(format('CREATE INDEX ON pg_temp.%I%s', p_name, regexp_replace(substr(v_index.tail, strpos(v_index.tail, ' USING ')),
        'timestamp(\(\d\))? without time zone', 'timestamp\1 with time zone', 'g')), false);
      advice := format('drop it, and create it again after the adoption');
    END IF;
    IF what IS NULL THEN
      kind := 'change'; advice := NULL;
      what := format('made again as %s on (%s) WHERE %s', CASE WHEN v_index.is_unique THEN 'a unique index' ELSE 'an index' END, coalesce(v_index.keys, 'tm_delete'), v_index.predicate);
      IF v_index.is_unique AND 'tm_delete' = ANY (p_retyped) THEN
        lock_ms := p_rows / 1000;
        what := what || format(', under an exclusive lock of about %s ms', lock_ms);
      ELSE
        what := what || ', beside your writes';
      END IF;
      IF v_index.is_unique THEN
        advice := format('statements with ON CONFLICT on it must say ON CONFLICT (%s) WHERE tm_delete IS NULL%s', v_index.keys,
          CASE WHEN v_index.predicate ~ '\) AND \(|\) OR \(.*\) OR \(' THEN ' AND what else the index has' ELSE '' END);
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
  FOR v_index IN SELECT i.indexrelid::regclass AS index, substr(pg_get_indexdef(i.indexrelid), strpos(pg_get_indexdef(i.indexrelid), ' USING ')) AS tail, i.indisunique, i.indisexclusion,
        ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = p_table AND a.attnum > 0 AND pg_get_indexdef(i.indexrelid) ~ ('\m' || a.attname || '\M')) AS columns
      FROM pg_index i WHERE i.indrelid = p_table AND NOT EXISTS (SELECT FROM pg_temp.adopt_index_plan(p_table, p_sentinels) AS p WHERE p.index = i.indexrelid) LOOP
    kind := 'refused'; subject := 'index ' || v_index.index; lock_ms := NULL;
    IF v_index.columns && p_retyped THEN
      what := CASE WHEN NOT v_index.indisexclusion THEN pg_temp.adoption_refuses(format('CREATE INDEX ON pg_temp.%I%s', p_name, v_index.tail), false) END;
      advice := format('DROP INDEX %s, and create it again after the adoption', v_index.index);
      IF what IS NULL AND NOT v_index.columns && '{id}' OR what IS NULL AND p_rows > 800000 THEN
        lock_ms := p_rows / 1000;
        what := format('built anew with its column''s type, under an exclusive lock of about %s ms', lock_ms);
        IF p_rows <= 800000 THEN
          kind := 'change'; advice := NULL;
        END IF;
      ELSIF what IS NOT NULL THEN
        what := 'it is on a column whose type changes, and PostgreSQL refuses it then: ' || what;
      END IF;
      IF what IS NOT NULL THEN
        RETURN NEXT;
      END IF;
    ELSIF v_index.indisunique AND 'status' = ANY (v_index.columns) AND EXISTS (SELECT FROM pg_attribute WHERE attrelid = p_table AND attname = 'status' AND NOT attisdropped) THEN
      EXECUTE format('SELECT count(*) FROM %s WHERE status IS NULL OR status::text = ''''', p_table) INTO v_count;
      IF v_count > 0 THEN
        what := format('it is unique and by status, and %s rows have none: they become active', v_count);
        advice := format('UPDATE %s SET status = ''active'' WHERE status IS NULL OR status = '''', and see that nothing is twice', p_table);
        RETURN NEXT;
      END IF;
    END IF;
  END LOOP;
END
$$;

-- Policies, triggers, rules, functions, generated columns, publications: PostgreSQL changes no type under them, and what compares
-- tm_delete with the sentinel finds nothing afterwards.
CREATE FUNCTION pg_temp.adoption_others(p_table regclass, p_retyped text[], p_sentinels timestamptz[])
RETURNS TABLE (kind text, relation text, subject text, what text, advice text, lock_ms bigint)
LANGUAGE plpgsql SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
DECLARE
  v_one record;
  v_text text;
  c_again text := 'drop it, and create it again after the adoption: ';
BEGIN
  kind := 'refused'; relation := p_table::text;
  FOR v_one IN
    SELECT d.classid::regclass::text AS class, d.objid, pg_describe_object(d.classid, d.objid, 0) AS called, bool_or(a.attname = ANY (p_retyped)) AS retyped,
        bool_or(a.attname = 'tm_delete' AND p_sentinels IS NOT NULL) AS sentinel, string_agg(DISTINCT a.attname, ', ') FILTER (WHERE a.attname = ANY (p_retyped)) AS columns
      FROM pg_depend d JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
      WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = p_table AND (a.attname = ANY (p_retyped) OR a.attname = 'tm_delete')
        AND d.classid IN ('pg_policy'::regclass, 'pg_trigger'::regclass, 'pg_rewrite'::regclass, 'pg_proc'::regclass, 'pg_attrdef'::regclass, 'pg_publication_rel'::regclass)
        AND NOT EXISTS (SELECT FROM pg_rewrite r JOIN pg_class v ON v.oid = r.ev_class AND v.relkind IN ('v', 'm') WHERE d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN')
        AND NOT EXISTS (SELECT FROM pg_attrdef f WHERE d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid AND f.adrelid = p_table AND f.adnum = a.attnum)
        AND NOT EXISTS (SELECT FROM pg_trigger g WHERE d.classid = 'pg_trigger'::regclass AND g.oid = d.objid AND g.tgisinternal)
      GROUP BY d.classid, d.objid
  LOOP
    subject := regexp_replace(v_one.called, ' on (table|view|column).*$', '');
    v_text := CASE v_one.class
      WHEN 'pg_policy' THEN (SELECT concat_ws(' ', pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid)) FROM pg_policy WHERE oid = v_one.objid)
      WHEN 'pg_trigger' THEN (SELECT regexp_replace(coalesce((regexp_match(pg_get_triggerdef(oid), ' WHEN \((.*)\) EXECUTE '))[1], ''),
        '\((?:old|new)\.tm_delete IS (?:NOT )?DISTINCT FROM (?:old|new)\.tm_delete\)', '', 'g') FROM pg_trigger WHERE oid = v_one.objid)
      WHEN 'pg_attrdef' THEN (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE oid = v_one.objid)
      WHEN 'pg_publication_rel' THEN 'tm_delete' ELSE '' END;
    IF v_one.retyped THEN
      what := format('it is on %s, whose type changes, which PostgreSQL does not allow', v_one.columns);
      advice := c_again || coalesce(CASE v_one.class WHEN 'pg_trigger' THEN (SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE oid = v_one.objid)
        WHEN 'pg_rewrite' THEN (SELECT pg_get_ruledef(oid) FROM pg_rewrite WHERE oid = v_one.objid) END, v_one.called);
      RETURN NEXT;
    ELSIF v_one.sentinel AND v_text <> '' AND pg_temp.adopt_null_safe(v_text, p_sentinels, v_one.class = 'pg_attrdef') IS DISTINCT FROM v_text THEN
      what := format('it goes by the sentinel in tm_delete, which becomes null: %s', v_text);
      advice := 'let it say tm_delete IS NULL OR tm_delete > now() for "not deleted", which is right before the adoption as well; IS DISTINCT FROM in the place of <>';
      RETURN NEXT;
    END IF;
  END LOOP;
  FOR v_one IN SELECT c.oid::regclass AS name, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p', 'm')
      WHERE a.atttypid IN (SELECT unnest(ARRAY[t.oid, t.typarray]) FROM pg_type t WHERE t.typrelid = p_table) AND NOT a.attisdropped LOOP
    subject := format('column %s.%I', v_one.name, v_one.attname); what := 'it holds rows of the table''s type, and PostgreSQL adds no columns to it then';
    advice := 'store these rows as jsonb, or as columns of their own';
    RETURN NEXT;
  END LOOP;
  FOR v_one IN SELECT inhrelid::regclass AS name FROM pg_inherits WHERE inhparent = p_table UNION ALL SELECT inhparent::regclass FROM pg_inherits WHERE inhrelid = p_table LOOP
    subject := 'table ' || v_one.name; what := 'one inherits from the other, which is not supported'; advice := format('ALTER TABLE … NO INHERIT %s', v_one.name);
    RETURN NEXT;
  END LOOP;
END
$$;

-- Views of all tables that are adopted: p_retyped has the columns of each.
CREATE FUNCTION pg_temp.adoption_views(p_tables regclass[], p_retyped jsonb, p_sentinels jsonb)
RETURNS TABLE (kind text, relation text, subject text, what text, advice text, lock_ms bigint)
LANGUAGE plpgsql SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
DECLARE
  v_view record;
  v_clones text[] := ARRAY(SELECT one::text FROM unnest(p_tables) AS one);
BEGIN
  FOR v_view IN
    WITH RECURSIVE uses AS (SELECT r.ev_class AS view, d.refobjid AS source, bool_or(EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
            AND p_retyped->(d.refobjid::regclass::text) ? a.attname::text)) AS retyped
        FROM pg_depend d JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid AND r.ev_class <> d.refobjid WHERE d.refclassid = 'pg_class'::regclass GROUP BY 1, 2),
    above (view, source, depth, retyped) AS (SELECT u.view, u.source, 1, u.retyped FROM uses u WHERE u.source = ANY (p_tables)
      UNION SELECT u.view, a.source, a.depth + 1, a.retyped FROM above a JOIN uses u ON u.source = a.view AND a.depth < 50)
    SELECT c.oid::regclass AS view, c.relkind, c.relowner, c.relname, bool_or(a.retyped) AS retyped, min(a.source)::regclass::text AS source, pg_get_viewdef(c.oid) AS definition,
        EXISTS (SELECT FROM pg_trigger WHERE tgrelid = c.oid) OR EXISTS (SELECT FROM pg_rewrite w WHERE w.ev_class = c.oid AND w.rulename <> '_RETURN') AS has_more,
        s.view IS NOT NULL AS by_time, s.again,
        (SELECT string_agg(DISTINCT pg_describe_object(d.classid, d.objid, 0), ', ') FROM pg_depend d WHERE d.deptype = 'n'
          AND (d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid OR d.refclassid = 'pg_type'::regclass AND d.refobjid IN (SELECT unnest(ARRAY[y.oid, y.typarray]) FROM pg_type y WHERE y.typrelid = c.oid))
          AND d.classid IN ('pg_proc'::regclass, 'pg_policy'::regclass, 'pg_class'::regclass, 'pg_constraint'::regclass)) AS hangs
      FROM above a JOIN pg_class c ON c.oid = a.view AND c.relkind IN ('v', 'm') AND c.relnamespace <> coalesce(to_regnamespace('reclaim'), 0)
      LEFT JOIN (SELECT w.* FROM (SELECT array_agg(DISTINCT e.key::regclass) AS tables, array_agg(one::timestamptz) AS sentinels FROM jsonb_each(p_sentinels) AS e
          CROSS JOIN jsonb_array_elements_text(e.value) AS one) AS p CROSS JOIN LATERAL pg_temp.adopt_view_plan(p.tables, p.sentinels) AS w) AS s ON s.view = c.oid
      GROUP BY c.oid, s.view, s.again ORDER BY max(a.depth)
  LOOP
    kind := 'refused'; relation := v_view.source; subject := 'view ' || v_view.view; what := NULL;
    advice := 'drop it, and create it again after the adoption';
    IF v_view.retyped THEN
      what := CASE WHEN v_view.relkind = 'm' THEN 'it is a materialized view and shows a column whose type changes, or is above one that does'
        WHEN v_view.has_more THEN 'it is a view with triggers or rules and shows a column whose type changes, or is above one that does'
        WHEN v_view.hangs IS NOT NULL THEN format('it shows a column whose type changes, and others need it: %s', v_view.hangs) END;
      IF what IS NULL THEN
        what := 'made again with the types that columns will have, PostgreSQL refuses it: ' || pg_temp.adoption_refuses(format('CREATE TEMP VIEW %I AS %s', v_view.relname,
          pg_temp.adoption_on_clones(v_view.definition, v_clones)), true);
        v_clones := v_clones || v_view.view::text;
      END IF;
    END IF;
    IF what IS NULL AND v_view.by_time AND (v_view.again IS NULL OR v_view.relkind = 'm' AND v_view.again <> v_view.definition) THEN
      what := 'it goes by tm_delete, whose sentinel becomes null, in a way that cannot be carried over';
      advice := 'let it say tm_delete IS NULL OR tm_delete > now() for "not deleted", which is right before the adoption as well';
    END IF;
    IF what IS NULL AND NOT pg_has_role(v_view.relowner, 'USAGE') AND (v_view.retyped OR v_view.again <> v_view.definition) THEN
      what := 'it belongs to another role, and must be made again'; advice := format('ALTER VIEW %s OWNER TO %s', v_view.view, current_user);
    END IF;
    IF what IS NULL THEN
      advice := NULL;
      kind := CASE WHEN v_view.retyped OR v_view.again <> v_view.definition THEN 'change' ELSE 'note' END;
      what := concat_ws('; ', CASE WHEN v_view.retyped THEN 'made again in the same transaction: it shows a column whose type changes, or is above one that does' END,
        CASE WHEN v_view.again <> v_view.definition THEN 'it compares tm_delete with a time: the comparison gets OR tm_delete IS NULL, so that it shows the same rows' END);
      what := coalesce(nullif(what, ''), 'it stays as it is');
    END IF;
    RETURN NEXT;
  END LOOP;
END
$$;
