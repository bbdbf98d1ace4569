-- reclaim: in parts
-- Adopts the customer_customers and billing_accounts that a team has in schema public; step 0011 marked them in
-- reclaim.adopted_columns and made empty tables of Reclaim's own, from which columns, constraints and indexes are taken.
--
-- The first section defines reclaim.step_next(), which tells the next statement to run, each in a transaction of its own, until
-- there is none; then the last section runs. All it goes by is the catalogue and reclaim.adoption, so that it goes on where it
-- was interrupted. A strong statement needs a lock that the team's programs would wait for: it only changes the catalogue or a
-- batch of rows, waits for its lock half a second at most, and is tried again. From its first to its last statement a trigger on the
-- table gives rows that other programs write the meaning that the batches give the rows that were there.

CREATE TABLE IF NOT EXISTS reclaim.adoption (
  name text PRIMARY KEY,                   -- 'customer_customers'
  before text[] NOT NULL,                  -- what the table looked like (reclaim.adopt_shape)
  balance text,                            -- the team's expression for balance_micros, or null
  filenode oid NOT NULL,                   -- of the table when the batches began: they begin again when it is rewritten
  blocks bigint NOT NULL,                  -- that hold rows from before
  next_block bigint NOT NULL DEFAULT 0,
  batch integer NOT NULL DEFAULT 16,       -- blocks at a time
  analyzed boolean NOT NULL DEFAULT false,
  began_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- What takes each change of the team's tables back; run in reverse order by going down.
CREATE TABLE IF NOT EXISTS reclaim.adoption_undo (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  statement text NOT NULL UNIQUE
);
REVOKE ALL ON reclaim.adoption, reclaim.adoption_undo FROM PUBLIC;

-- A table as pg_dump would write it, a line for each thing, and the views on it.
CREATE OR REPLACE FUNCTION reclaim.adopt_shape(p_table regclass) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT format('column %I %s%s%s', a.attname, format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END,
      coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), ''))
    FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = p_table AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT format('constraint %I %s', conname, pg_get_constraintdef(oid)) FROM pg_constraint WHERE conrelid = p_table AND contype <> 'n'
  UNION ALL
  SELECT format('index %s', pg_get_indexdef(indexrelid)) FROM pg_index WHERE indrelid = p_table
  UNION ALL
  SELECT format('trigger %s', pg_get_triggerdef(oid)) FROM pg_trigger WHERE tgrelid = p_table AND NOT tgisinternal
  UNION ALL
  SELECT DISTINCT format('view %s: %s', r.ev_class::regclass, pg_get_viewdef(r.ev_class)) FROM pg_depend d
    JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
    JOIN pg_class v ON v.oid = r.ev_class AND v.relnamespace <> coalesce(to_regnamespace('reclaim'), 0)
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = p_table
$$;
REVOKE ALL ON FUNCTION reclaim.adopt_shape FROM PUBLIC;

-- Changes a table under views: they are taken away and made again in the same transaction, with their owners, options,
-- privileges and comments. Also used on the way down.
CREATE OR REPLACE FUNCTION reclaim.adopt_alter(p_table regclass, p_change text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
DECLARE
  v_view record;
  v_drops text := '';
  v_again text := '';
BEGIN
  FOR v_view IN
    WITH RECURSIVE above (view, depth) AS (
      SELECT r.ev_class, 1 FROM pg_depend d JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
        WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = p_table AND r.ev_class <> p_table
      UNION
      SELECT r.ev_class, a.depth + 1 FROM above a JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = a.view
        JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid WHERE r.ev_class <> a.view AND a.depth < 50)
    SELECT c.oid::regclass AS view, c.relowner, c.reloptions, c.relacl, max(a.depth) AS depth, obj_description(c.oid, 'pg_class') AS comment,
        pg_get_viewdef(c.oid) AS definition
      FROM above a JOIN pg_class c ON c.oid = a.view GROUP BY c.oid ORDER BY max(a.depth)
  LOOP
    v_drops := format('DROP VIEW %s; ', v_view.view) || v_drops;
    v_again := v_again || format('CREATE VIEW %1$s %2$s AS %3$s ALTER VIEW %1$s OWNER TO %4$s; ', v_view.view,
        coalesce('WITH (' || array_to_string(v_view.reloptions, ', ') || ')', ''), v_view.definition, v_view.relowner::regrole)
      || coalesce(format('COMMENT ON VIEW %s IS %L; ', v_view.view, v_view.comment), '')
      || coalesce((SELECT string_agg(format('GRANT %s ON %s TO %s%s; ', g.privilege_type, v_view.view,
            CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END, CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END), '')
          FROM aclexplode(v_view.relacl) AS g), '')
      || coalesce((SELECT string_agg(format('COMMENT ON COLUMN %s.%I IS %L; ', v_view.view, a.attname, col_description(a.attrelid, a.attnum)), '')
          FROM pg_attribute a WHERE a.attrelid = v_view.view AND col_description(a.attrelid, a.attnum) IS NOT NULL), '');
  END LOOP;
  EXECUTE v_drops || format('ALTER TABLE %s %s; ', p_table, p_change) || v_again;
END
$$;
REVOKE ALL ON FUNCTION reclaim.adopt_alter FROM PUBLIC;

CREATE OR REPLACE FUNCTION reclaim.adopt_undo(p_statement text) RETURNS void
LANGUAGE sql SET search_path = pg_catalog
AS $$ INSERT INTO reclaim.adoption_undo (statement) VALUES (p_statement) ON CONFLICT DO NOTHING $$;
REVOKE ALL ON FUNCTION reclaim.adopt_undo FROM PUBLIC;

-- When a row was deleted: some programs write a time far ahead, or the beginning of the epoch, for "not deleted"
-- (reclaim.is_sentinel).
CREATE OR REPLACE FUNCTION reclaim.adopt_time(p_time timestamptz) RETURNS timestamptz
LANGUAGE sql STABLE
AS $$ SELECT CASE WHEN p_time BETWEEN '1970-01-02 00:00:00+00' AND pg_catalog.now() + interval '1 year' THEN p_time END $$;
REVOKE ALL ON FUNCTION reclaim.adopt_time FROM PUBLIC;

-- Where the customers are whose accounts are adopted.
CREATE OR REPLACE FUNCTION reclaim.adopt_customers() RETURNS text
LANGUAGE sql STABLE
AS $$
  SELECT CASE WHEN EXISTS (SELECT FROM reclaim.adopted_columns WHERE relation = 'public.customer_customers') THEN 'public.customer_customers'
    ELSE 'reclaim.customer_customers' END
$$;
REVOKE ALL ON FUNCTION reclaim.adopt_customers FROM PUBLIC;

-- A row of customer_customers that is written before the triggers of Reclaim are there. A change of state that another
-- program makes meanwhile is noted: the leader writes its consequences (reclaim.customer_sweep).
CREATE OR REPLACE FUNCTION reclaim.adopting_customer() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_gone timestamptz := reclaim.adopt_time(NEW.tm_delete);
  v_status text := CASE WHEN v_gone IS NOT NULL THEN 'deleted' ELSE coalesce(nullif(NEW.status::text, ''), 'active') END;
  v_was text;
BEGIN
  NEW.status := v_status;
  NEW.tm_delete := CASE WHEN v_status = 'deleted' THEN coalesce(v_gone, reclaim.adopt_time(NEW.tm_update), clock_timestamp()) END;
  IF v_status = 'frozen' THEN
    NEW.tm_deletion_scheduled := coalesce(NEW.tm_deletion_scheduled, clock_timestamp());
  ELSIF v_status = 'active' THEN
    NEW.tm_deletion_scheduled := NULL;
  END IF;
  NEW.version := greatest(coalesce(NEW.version, 1), 1);
  NEW.changed_xid := coalesce(NEW.changed_xid, pg_current_xact_id());
  IF current_setting('reclaim.adopting', true) IS NOT DISTINCT FROM 'on' THEN
    RETURN NEW;
  END IF;
  IF TG_OP = 'UPDATE' THEN
    v_was := CASE WHEN reclaim.adopt_time(OLD.tm_delete) IS NOT NULL THEN 'deleted' ELSE coalesce(nullif(OLD.status::text, ''), 'active') END;
  END IF;
  IF v_status <> coalesce(v_was, 'active') AND v_status IN ('active', 'frozen', 'deleted') THEN
    NEW.version := greatest(coalesce(NEW.version, 1), 1) + CASE WHEN TG_OP = 'UPDATE' THEN 1 ELSE 0 END;
    NEW.changed_xid := pg_current_xact_id();
    IF v_was = 'deleted' THEN
      DELETE FROM reclaim.customer_told WHERE customer_id = NEW.id::uuid;
    ELSE
      INSERT INTO reclaim.customer_pending (customer_id, change, version, removed)
        VALUES (NEW.id::uuid, CASE WHEN v_status = 'frozen' THEN 'freeze' WHEN v_status = 'active' THEN 'recover'
          WHEN TG_OP = 'INSERT' THEN 'import' ELSE 'delete' END, NEW.version, false);
    END IF;
  END IF;
  RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION reclaim.adopting_customer FROM PUBLIC;

-- The trigger's function for billing_accounts, with the expression for its balance. Accounts of customers that are frozen or
-- deleted are so too, since then. A hold without a reason must not look like a freeze, which a recovery would lift.
CREATE OR REPLACE FUNCTION reclaim.adopt_account_function(p_balance text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog
AS $make$
BEGIN
  EXECUTE format($function$
    CREATE OR REPLACE FUNCTION reclaim.adopting_account() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    DECLARE
      v_gone timestamptz := reclaim.adopt_time(NEW.tm_delete);
      v_status text := CASE WHEN v_gone IS NOT NULL THEN 'deleted' ELSE coalesce(nullif(NEW.status::text, ''), 'active') END;
      v_customer record;
    BEGIN
      SELECT c.status, c.tm_deletion_scheduled AS since, c.tm_delete AS gone INTO v_customer FROM %s c WHERE c.id = NEW.customer_id;
      IF v_customer.status = 'deleted' AND v_status <> 'deleted' THEN
        v_gone := v_customer.gone;
        v_status := 'deleted';
      END IF;
      NEW.hold_reasons := coalesce(NEW.hold_reasons, '{}');
      IF v_customer.status = 'frozen' AND v_status <> 'deleted' THEN
        IF v_status <> 'frozen' THEN
          NEW.tm_update := clock_timestamp();
          v_status := 'frozen';
        END IF;
        IF NOT 'account_frozen' = ANY (NEW.hold_reasons) THEN
          NEW.hold_reasons := array_append(NEW.hold_reasons, 'account_frozen');
          INSERT INTO reclaim.billing_freezes (billing_account_id, frozen_at) VALUES (NEW.id, coalesce(v_customer.since, clock_timestamp()))
            ON CONFLICT DO NOTHING;
        END IF;
      ELSIF v_status = 'frozen' AND NEW.hold_reasons = '{}' THEN
        NEW.hold_reasons := '{held}';
      END IF;
      NEW.status := v_status;
      NEW.tm_delete := CASE WHEN v_status = 'deleted' THEN coalesce(v_gone, reclaim.adopt_time(NEW.tm_update), clock_timestamp()) END;
      NEW.balance_micros := coalesce(%s, NEW.balance_micros, 0);
      RETURN NEW;
    END
    $$;
    REVOKE ALL ON FUNCTION reclaim.adopting_account FROM PUBLIC$function$,
    reclaim.adopt_customers(), coalesce(p_balance, 'NULL'));
END
$make$;
REVOKE ALL ON FUNCTION reclaim.adopt_account_function FROM PUBLIC;

-- The first change of a table, short: columns, defaults, and the trigger. Defaults that differ from row to row are added as
-- the constant that they are now, so that PostgreSQL does not write the table anew.
CREATE OR REPLACE FUNCTION reclaim.adopt_begin(p_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
DECLARE
  v_table regclass := format('public.%I', p_name)::regclass;
  v_balance text := nullif(current_setting('reclaim.balance', true), '');
  v_column record;
  v_index record;
  v_now text;
  v_using text;
  v_alter text[] := '{}';
  v_retype text[] := '{}';
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', v_table);
  INSERT INTO reclaim.adoption (name, before, balance, filenode, blocks)
    VALUES (p_name, ARRAY(SELECT reclaim.adopt_shape(v_table)), CASE p_name WHEN 'billing_accounts' THEN v_balance END, 0, 0);

  -- An index on "not deleted" by its sentinel would be on nothing: it is made again, under its name, on tm_delete IS NULL.
  FOR v_index IN SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS definition,
      regexp_replace(pg_get_indexdef(i.indexrelid), ' WHERE .*$', ' WHERE (tm_delete IS NULL)') AS again
    FROM pg_index i WHERE i.indrelid = v_table AND pg_get_expr(i.indpred, i.indrelid) ~ '^\(tm_delete (=|>=|>) ''[^'']*''::timestamp[a-z ()0-9]*\)$'
      AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)
  LOOP
    PERFORM reclaim.adopt_undo(replace(v_index.definition, 'INDEX ', 'INDEX IF NOT EXISTS '));
    EXECUTE format('DROP INDEX %s', v_index.name);
    INSERT INTO reclaim.adoption_index (name, definition) VALUES (p_name, v_index.again);
    PERFORM reclaim.adopt_undo(format('DROP INDEX IF EXISTS %s', v_index.name));
  END LOOP;

  FOR v_column IN
    SELECT m.attname AS name, format_type(m.atttypid, m.atttypmod) AS type, m.attnotnull AS required, pg_get_expr(md.adbin, md.adrelid) AS preset,
        t.attnum IS NOT NULL AS there, format_type(t.atttypid, t.atttypmod) AS had_type, t.atttypid AS had_oid, t.attnotnull AS had_required, y.typcategory AS had_kind,
        pg_get_expr(td.adbin, td.adrelid) AS had_preset, coalesce(t.attidentity, '') <> '' OR coalesce(t.attgenerated, '') <> '' AS fixed
      FROM pg_attribute m LEFT JOIN pg_attrdef md ON md.adrelid = m.attrelid AND md.adnum = m.attnum
      LEFT JOIN pg_attribute t ON t.attrelid = v_table AND t.attname = m.attname AND NOT t.attisdropped
      LEFT JOIN pg_type y ON y.oid = t.atttypid LEFT JOIN pg_attrdef td ON td.adrelid = t.attrelid AND td.adnum = t.attnum
      WHERE m.attrelid = format('reclaim.%I', p_name)::regclass AND m.attnum > 0 AND NOT m.attisdropped ORDER BY m.attnum
  LOOP
    IF NOT v_column.there THEN
      EXECUTE format('SELECT quote_nullable((%s)::text)', coalesce(v_column.preset, 'NULL')) INTO v_now;
      PERFORM reclaim.adopt_undo(format('ALTER TABLE %s DROP COLUMN IF EXISTS %I', v_table, v_column.name));
      v_alter := v_alter || format('ADD COLUMN %I %s%s%s', v_column.name, v_column.type,
        CASE WHEN v_now <> 'NULL' THEN format(' DEFAULT %s::%s', v_now, v_column.type) ELSE '' END,
        CASE WHEN v_column.required AND v_now <> 'NULL' THEN ' NOT NULL' ELSE '' END);
      INSERT INTO reclaim.adopted_columns VALUES (v_table::text, v_column.name);
    ELSIF NOT v_column.fixed AND (v_column.name <> 'id' OR v_column.had_preset IS NULL OR v_column.had_kind = 'S') THEN
      -- Times without a zone were written by programs that meant UTC: with that zone set PostgreSQL keeps the table as it is. The
      -- others are written anew; sql/adoption_check.sql refuses them on large tables.
      v_using := CASE WHEN v_column.type = 'timestamp with time zone' AND v_column.had_oid = 'timestamp'::regtype THEN ''
        WHEN v_column.type = 'uuid' AND v_column.had_kind = 'S' THEN format(' USING nullif(%I::text, '''')::uuid', v_column.name)
        WHEN v_column.name = 'status' AND v_column.had_kind = 'E' THEN format(' USING %I::text', v_column.name) END;
      IF v_using IS NOT NULL THEN
        v_retype := v_retype || format('ALTER COLUMN %I DROP DEFAULT', v_column.name)
          || format('ALTER COLUMN %I TYPE %s%s', v_column.name, v_column.type, v_using);
      END IF;
      IF v_column.preset IS NULL AND NOT v_column.required AND v_column.had_required THEN
        PERFORM reclaim.adopt_undo(format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL', v_table, v_column.name));
        IF v_column.had_preset IS NOT NULL THEN
          PERFORM reclaim.adopt_undo(format('UPDATE %s SET %I = DEFAULT WHERE %2$I IS NULL', v_table, v_column.name));
        END IF;
        v_alter := v_alter || format('ALTER COLUMN %I DROP NOT NULL', v_column.name);
      END IF;
      IF v_column.had_preset IS NOT NULL AND NOT (v_column.required AND v_column.preset IS NULL) THEN
        PERFORM reclaim.adopt_undo(format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', v_table, v_column.name, v_column.had_preset));
      END IF;
      IF v_using IS NOT NULL THEN
        PERFORM reclaim.adopt_undo(format('SELECT reclaim.adopt_alter(%L, %L)', v_table,
          format('ALTER COLUMN %I DROP DEFAULT, ALTER COLUMN %1$I TYPE %s%s', v_column.name, v_column.had_type,
            CASE WHEN v_using <> '' THEN format(' USING %I::text::%s', v_column.name, v_column.had_type) ELSE '' END)));
      END IF;
      IF v_column.had_preset IS NULL AND v_column.preset IS NOT NULL THEN
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
  IF v_retype <> '{}' THEN
    PERFORM reclaim.adopt_alter(v_table, array_to_string(v_retype, ', '));
  END IF;
  IF v_alter <> '{}' THEN
    EXECUTE format('ALTER TABLE %s %s', v_table, array_to_string(v_alter, ', '));
  END IF;

  IF p_name = 'billing_accounts' THEN
    PERFORM reclaim.adopt_account_function(v_balance);
  END IF;
  EXECUTE format('CREATE TRIGGER zz_reclaim_adopting BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION reclaim.%I()', v_table,
    CASE p_name WHEN 'billing_accounts' THEN 'adopting_account' ELSE 'adopting_customer' END);
  UPDATE reclaim.adoption SET filenode = pg_relation_filenode(v_table),
    blocks = pg_relation_size(v_table) / current_setting('block_size')::bigint WHERE name = p_name;
END
$$;
REVOKE ALL ON FUNCTION reclaim.adopt_begin FROM PUBLIC;

-- Indexes of the team's that are made again.
CREATE TABLE IF NOT EXISTS reclaim.adoption_index (
  name text NOT NULL,
  definition text NOT NULL
);
REVOKE ALL ON reclaim.adoption_index FROM PUBLIC;

-- A batch: rows of the next blocks that need a change get it from the trigger. The batch grows and shrinks with the time that it takes.
CREATE OR REPLACE FUNCTION reclaim.adopt_rows(p_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_table regclass := format('public.%I', p_name)::regclass;
  v_began timestamptz := clock_timestamp();
  v_at reclaim.adoption;
  v_spent interval;
  v_range text;
BEGIN
  SELECT * INTO v_at FROM reclaim.adoption WHERE name = p_name FOR UPDATE;
  IF v_at.filenode <> pg_relation_filenode(v_table) THEN
    UPDATE reclaim.adoption SET filenode = pg_relation_filenode(v_table), next_block = 0,
      blocks = pg_relation_size(v_table) / current_setting('block_size')::bigint WHERE name = p_name RETURNING * INTO v_at;
  END IF;
  PERFORM set_config('reclaim.adopting', 'on', true);
  v_range := format('ctid >= ''(%s,0)'' AND ctid < ''(%s,0)''', v_at.next_block, least(v_at.next_block + v_at.batch, v_at.blocks));
  IF p_name = 'customer_customers' THEN
    EXECUTE format($batch$
      WITH changed AS (UPDATE %s SET version = version WHERE %s AND (tm_delete IS NOT NULL OR status IS NULL OR status::text <> 'active'
          OR tm_deletion_scheduled IS NOT NULL OR version IS NULL OR changed_xid IS NULL) RETURNING id, status::text AS status, version)
      INSERT INTO reclaim.customer_told (customer_id, status, version) SELECT c.id::uuid, c.status, c.version FROM changed c
        WHERE c.status IN ('frozen', 'deleted') AND NOT EXISTS (SELECT FROM reclaim.customer_pending p WHERE p.customer_id = c.id::uuid)
        ON CONFLICT DO NOTHING$batch$, v_table, v_range);
  ELSE
    EXECUTE format('UPDATE %s a SET hold_reasons = hold_reasons WHERE %s AND (tm_delete IS NOT NULL OR status IS NULL OR status::text <> ''active''
      OR hold_reasons IS NULL OR balance_micros IS NULL OR EXISTS (SELECT FROM %s c WHERE c.id = a.customer_id AND c.status <> ''active'') OR %s)',
      v_table, replace(v_range, 'ctid', 'a.ctid'), reclaim.adopt_customers(),
      CASE WHEN v_at.balance IS NULL THEN 'false' ELSE format('(%s) <> balance_micros', replace(v_at.balance, 'NEW.', '')) END);
  END IF;
  v_spent := clock_timestamp() - v_began;
  UPDATE reclaim.adoption SET next_block = least(next_block + batch, blocks),
    batch = CASE WHEN v_spent > interval '300 ms' THEN greatest(batch / 2, 1) WHEN v_spent < interval '100 ms' THEN least(batch * 2, 2048) ELSE batch END
    WHERE name = p_name;
END
$$;
REVOKE ALL ON FUNCTION reclaim.adopt_rows FROM PUBLIC;

-- From here on reclaim.NAME is the team's table.
CREATE OR REPLACE FUNCTION reclaim.adopt_switch(p_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_columns text := (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
    WHERE attrelid = format('reclaim.%I', p_name)::regclass AND attnum > 0 AND NOT attisdropped);
BEGIN
  EXECUTE format('ALTER TABLE reclaim.%I RENAME TO %I', p_name, 'own_' || p_name);
  EXECUTE format('CREATE VIEW reclaim.%I AS SELECT %s FROM public.%1$I', p_name, v_columns);
  EXECUTE format('REVOKE ALL ON reclaim.%I FROM PUBLIC', p_name);
END
$$;
REVOKE ALL ON FUNCTION reclaim.adopt_switch FROM PUBLIC;

CREATE OR REPLACE FUNCTION reclaim.step_next(OUT statement text, OUT strong boolean, OUT what text, OUT done bigint, OUT total bigint)
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_names text[] := ARRAY(SELECT substr(relation, 8) FROM reclaim.adopted_columns WHERE column_name = '' AND relation LIKE 'public.%'
    AND (SELECT relkind FROM pg_class WHERE oid = to_regclass('reclaim.' || substr(relation, 8))) = 'r' ORDER BY relation DESC);
  v_name text;
  v_table regclass;
  v_model regclass;
  v_at reclaim.adoption;
  v_part record;
BEGIN
  strong := true;
  done := 0;
  total := 0;
  FOREACH v_name IN ARRAY v_names LOOP
    v_table := to_regclass('public.' || v_name);
    v_model := to_regclass('reclaim.' || v_name);
    IF v_table IS NULL THEN
      RAISE EXCEPTION 'public.%, which is being adopted, is gone', v_name
        USING HINT = 'Bring it back and migrate again, or take the schema back with reclaim migrate --down.';
    END IF;
    SELECT * INTO v_at FROM reclaim.adoption a WHERE a.name = v_name;
    IF NOT FOUND THEN
      statement := format('SELECT reclaim.adopt_begin(%L)', v_name);
      what := format('%s: columns', v_table);
      RETURN;
    END IF;
    IF v_at.next_block < v_at.blocks THEN
      statement := format('SELECT reclaim.adopt_rows(%L)', v_name);
      what := format('%s: rows', v_table);
      done := v_at.next_block;
      total := v_at.blocks;
      RETURN;
    END IF;

    -- Constraints: from now on, then for the rows that were there.
    FOR v_part IN
      SELECT m.conname, pg_get_constraintdef(m.oid) AS definition, t.oid IS NOT NULL AS there, coalesce(t.convalidated, false) AS valid
        FROM pg_constraint m LEFT JOIN pg_constraint t ON t.conrelid = v_table AND t.conname = m.conname
        WHERE m.conrelid = v_model AND m.contype = 'c' ORDER BY m.conname
    LOOP
      IF NOT v_part.there THEN
        statement := format('SELECT reclaim.adopt_undo(%L); ALTER TABLE %s ADD CONSTRAINT %I %s NOT VALID',
          format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS %I', v_table, v_part.conname), v_table, v_part.conname, v_part.definition);
      ELSIF NOT v_part.valid THEN
        statement := format('ALTER TABLE %s VALIDATE CONSTRAINT %I', v_table, v_part.conname);
        strong := false;
      ELSE
        CONTINUE;
      END IF;
      what := format('%s: constraint %s', v_table, v_part.conname);
      RETURN;
    END LOOP;
    -- With a valid constraint that says the same, SET NOT NULL does not read the table.
    FOR v_part IN
      SELECT t.attname, c.oid IS NOT NULL AS there, coalesce(c.convalidated, false) AS valid, 'reclaim_adopting_' || t.attname AS conname
        FROM pg_attribute m JOIN pg_attribute t ON t.attrelid = v_table AND t.attname = m.attname AND NOT t.attisdropped AND NOT t.attnotnull
        LEFT JOIN pg_constraint c ON c.conrelid = v_table AND c.conname = 'reclaim_adopting_' || t.attname
        WHERE m.attrelid = v_model AND m.attnum > 0 AND m.attnotnull AND m.attname <> 'id' ORDER BY m.attnum
    LOOP
      what := format('%s: %s not null', v_table, v_part.attname);
      IF NOT v_part.there THEN
        statement := format('ALTER TABLE %s ADD CONSTRAINT %I CHECK (%I IS NOT NULL) NOT VALID', v_table, v_part.conname, v_part.attname);
      ELSIF NOT v_part.valid THEN
        statement := format('ALTER TABLE %s VALIDATE CONSTRAINT %I', v_table, v_part.conname);
        strong := false;
      ELSE
        statement := format('SELECT reclaim.adopt_undo(%L); ALTER TABLE %s ALTER COLUMN %I SET NOT NULL; ALTER TABLE %2$s DROP CONSTRAINT %4$I',
          format('ALTER TABLE %s ALTER COLUMN %I DROP NOT NULL', v_table, v_part.attname), v_table, v_part.attname, v_part.conname);
      END IF;
      RETURN;
    END LOOP;

    -- Indexes, beside the team's writes. One that is not valid was left by a crash.
    FOR v_part IN
      SELECT w.name, w.definition, t.indexrelid IS NOT NULL AS there, coalesce(t.indisvalid, false) AS valid FROM (
          SELECT c.relname AS name, replace(pg_get_indexdef(i.indexrelid), ' ON ' || v_model || ' ', ' ON ' || v_table || ' ') AS definition
            FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = v_model AND NOT i.indisprimary
          UNION ALL SELECT (regexp_match(x.definition, 'INDEX (\S+) ON '))[1], x.definition FROM reclaim.adoption_index x WHERE x.name = v_name) w
        LEFT JOIN (pg_index t JOIN pg_class tc ON tc.oid = t.indexrelid) ON t.indrelid = v_table AND quote_ident(tc.relname) IN (w.name, quote_ident(w.name))
        ORDER BY w.name
    LOOP
      CONTINUE WHEN v_part.valid;
      what := format('%s: index %s', v_table, v_part.name);
      strong := false;
      IF v_part.there THEN
        statement := format('DROP INDEX CONCURRENTLY public.%s', quote_ident(v_part.name));
      ELSE
        PERFORM reclaim.adopt_undo(format('DROP INDEX IF EXISTS public.%s', quote_ident(v_part.name)));
        statement := regexp_replace(v_part.definition, '^CREATE (UNIQUE )?INDEX ', 'CREATE \1INDEX CONCURRENTLY ');
      END IF;
      RETURN;
    END LOOP;
    IF NOT v_at.analyzed THEN
      statement := format('UPDATE reclaim.adoption SET analyzed = true WHERE name = %L; ANALYZE %s', v_name, v_table);
      strong := false;
      what := format('%s: statistics', v_table);
      RETURN;
    END IF;
  END LOOP;

  IF v_names = '{}' THEN
    RETURN;
  END IF;
  statement := (SELECT string_agg(format('SELECT reclaim.adopt_switch(%L)', one), '; ') FROM unnest(v_names) AS one);
  what := 'the tables are taken over';
END
$$;
REVOKE ALL ON FUNCTION reclaim.step_next FROM PUBLIC;

-- reclaim: at the end
-- Going down makes these two again.
INSERT INTO reclaim.adoption_undo (statement) SELECT pg_get_functiondef(oid) FROM pg_proc
  WHERE oid IN ('reclaim.adopt_shape(regclass)'::regprocedure, 'reclaim.adopt_alter(regclass, text)'::regprocedure);
DROP FUNCTION reclaim.adopt_shape(regclass);
DROP FUNCTION reclaim.adopt_alter(regclass, text);
DROP FUNCTION reclaim.adopt_begin(text);
DROP FUNCTION reclaim.adopt_customers();
DROP FUNCTION reclaim.adopt_rows(text);
DROP FUNCTION reclaim.adopt_switch(text);
DROP FUNCTION reclaim.adopt_undo(text);
DROP FUNCTION reclaim.adopt_account_function(text);
DROP FUNCTION reclaim.step_next();
DROP TABLE reclaim.adoption_index;
-- Where nothing was adopted, nothing is left.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM reclaim.adoption) THEN
    DROP FUNCTION IF EXISTS reclaim.adopting_customer();
    DROP FUNCTION IF EXISTS reclaim.adopt_time(timestamptz);
  END IF;
END
$$;
-- reclaim.adopting_customer, adopting_account and adopt_time serve until the triggers of Reclaim take their place, in the transaction
-- that makes them (sql/triggers.sql).
