-- reclaim: in parts
-- formerly d93aa262b9a8f9450d402ca5e2465f82ad7a663cd763e7568435348842a5f10e
-- Adopts the customer_customers and billing_accounts that a team has in schema public; step 0011 marked them in
-- reclaim.adopted_columns and made empty tables of Reclaim's own, from which columns, constraints and indexes are taken.
--
-- What is first changed, and how, is in sql/adoption_begin.sql and sql/adoption_shared.sql, which the program runs in the same session.
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
-- What is known before a table is touched.
CREATE TABLE IF NOT EXISTS reclaim.adoption_plan (
  name text PRIMARY KEY,
  sentinels timestamptz[],                 -- that the team writes for "not deleted", the usual one first, or null
  balance text                             -- as in reclaim migrate --balance
);
-- Indexes of the team's that are made again later, and foreign keys that are to be validated.
CREATE TABLE IF NOT EXISTS reclaim.adoption_index (
  name text NOT NULL,
  definition text,                         -- null: it is there
  index_name name,
  comment text
);
CREATE TABLE IF NOT EXISTS reclaim.adoption_key (
  relation regclass NOT NULL,
  name text NOT NULL
);
-- What takes each change of the team's tables back; run in reverse order by going down.
CREATE TABLE IF NOT EXISTS reclaim.adoption_undo (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  statement text NOT NULL UNIQUE
);
REVOKE ALL ON reclaim.adoption, reclaim.adoption_plan, reclaim.adoption_index, reclaim.adoption_key, reclaim.adoption_undo FROM PUBLIC;

-- Whoever goes on without --balance means the one that was given first.
INSERT INTO reclaim.adoption_plan AS p (name, sentinels, balance)
  SELECT substr(relation, 8), pg_temp.adopt_sentinels(to_regclass(relation)),
      CASE relation WHEN 'public.billing_accounts' THEN nullif(current_setting('reclaim.balance', true), '') END
    FROM reclaim.adopted_columns WHERE column_name = '' AND relation LIKE 'public.%' AND to_regclass(relation) IS NOT NULL
  ON CONFLICT (name) DO UPDATE SET balance = coalesce(excluded.balance, p.balance);

-- A table as pg_dump would write it, a line for each thing, and all views above it.
CREATE OR REPLACE FUNCTION reclaim.adopt_shape(p_table regclass) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  WITH RECURSIVE above (view) AS (
    SELECT r.ev_class FROM pg_depend d JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
      WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = p_table AND r.ev_class <> p_table
    UNION
    SELECT r.ev_class FROM above a JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = a.view
      JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid AND r.ev_class <> a.view),
  views AS (SELECT c.* FROM above a JOIN pg_class c ON c.oid = a.view AND c.relkind IN ('v', 'm') AND c.relnamespace <> coalesce(to_regnamespace('reclaim'), 0)),
  things AS (SELECT p_table::oid AS thing UNION ALL SELECT oid FROM views)
  SELECT format('column %I %s%s%s', a.attname, format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END,
      coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), ''))
    FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = p_table AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT format('constraint %I %s%s', conname, pg_get_constraintdef(oid), coalesce(' COMMENT ' || quote_literal(obj_description(oid, 'pg_constraint')), ''))
    FROM pg_constraint WHERE conrelid = p_table AND contype <> 'n'
  UNION ALL
  SELECT format('index %s%s', pg_get_indexdef(i.indexrelid), coalesce(' COMMENT ' || quote_literal(obj_description(i.indexrelid, 'pg_class')), ''))
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = p_table AND c.relname !~ '^reclaim_adopting_'
  UNION ALL
  SELECT format('trigger %s%s', pg_get_triggerdef(oid), CASE tgenabled WHEN 'O' THEN '' ELSE format(' (%s)', tgenabled) END)
    FROM pg_trigger WHERE tgrelid IN (SELECT thing FROM things) AND NOT tgisinternal
  UNION ALL
  SELECT format('policy %I FOR %s USING %s WITH CHECK %s', polname, polcmd, pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid))
    FROM pg_policy WHERE polrelid = p_table
  UNION ALL
  SELECT format('rule %s', pg_get_ruledef(oid)) FROM pg_rewrite WHERE ev_class IN (SELECT thing FROM things) AND rulename <> '_RETURN'
  UNION ALL
  SELECT format('view %s: %s', v.oid::regclass, pg_get_viewdef(v.oid)) FROM views v
  UNION ALL
  SELECT format('view %s: owner %s, options %s, comment %L', v.oid::regclass, v.relowner::regrole, v.reloptions, obj_description(v.oid, 'pg_class')) FROM views v
  UNION ALL
  SELECT format('view %s: %s to %s by %s%s', v.oid::regclass, g.privilege_type, CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END,
      g.grantor::regrole, CASE WHEN g.is_grantable THEN ' with grant option' ELSE '' END)
    FROM views v CROSS JOIN LATERAL aclexplode(coalesce(v.relacl, acldefault('r', v.relowner))) AS g
  UNION ALL
  SELECT format('view %s: column %I, default %s, privileges %s, comment %L', v.oid::regclass, a.attname, pg_get_expr(d.adbin, d.adrelid), a.attacl, col_description(v.oid, a.attnum))
    FROM views v JOIN pg_attribute a ON a.attrelid = v.oid AND a.attnum > 0 LEFT JOIN pg_attrdef d ON d.adrelid = v.oid AND d.adnum = a.attnum
$$;
REVOKE ALL ON FUNCTION reclaim.adopt_shape FROM PUBLIC;

-- Changes the types of columns under views: [{table, columns, change}]. Views that show these columns are taken away, with those above
-- them, and made again in the same transaction, with their owners, options, defaults, privileges and comments. Returns {view: {was, is}}
-- as PostgreSQL writes them; on the way down this is p_known, so that a view whose text the types changed has its own again.
CREATE OR REPLACE FUNCTION reclaim.adopt_alter(p_changes jsonb, p_known jsonb) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
DECLARE
  v_view record;
  v_one record;
  v_drops text := '';
  v_views text[] := '{}';
  v_makes text[] := '{}';
  v_grants text[] := '{}';
  v_texts jsonb := '{}';
BEGIN
  FOR v_view IN
    WITH RECURSIVE above (view, depth) AS (
      SELECT r.ev_class, 1 FROM jsonb_to_recordset(p_changes) AS t ("table" regclass, columns name[])
        JOIN pg_attribute c ON c.attrelid = t."table" AND c.attname = ANY (t.columns)
        JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = c.attrelid AND d.refobjsubid = c.attnum
        JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid AND r.ev_class <> c.attrelid
      UNION
      SELECT r.ev_class, a.depth + 1 FROM above a JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = a.view
        JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid WHERE r.ev_class <> a.view AND a.depth < 50)
    SELECT c.oid::regclass AS view, c.relowner, c.reloptions, coalesce(c.relacl, acldefault('r', c.relowner)) AS acl,
        obj_description(c.oid, 'pg_class') AS comment, pg_get_viewdef(c.oid) AS definition
      FROM above a JOIN pg_class c ON c.oid = a.view GROUP BY c.oid ORDER BY max(a.depth)
  LOOP
    v_drops := format('DROP VIEW %s; ', v_view.view) || v_drops;
    v_views := v_views || v_view.view::text;
    v_texts := v_texts || jsonb_build_object(v_view.view::text, jsonb_build_object('was', v_view.definition));
    v_makes := v_makes || (format('CREATE VIEW %1$s %2$s AS %3$s ALTER VIEW %1$s OWNER TO %4$s; ', v_view.view,
        coalesce('WITH (' || array_to_string(v_view.reloptions, ', ') || ')', ''),
        CASE WHEN p_known->(v_view.view::text)->>'is' = v_view.definition THEN p_known->(v_view.view::text)->>'was' ELSE v_view.definition END, v_view.relowner::regrole)
      || coalesce(format('COMMENT ON VIEW %s IS ', v_view.view) || quote_literal(v_view.comment) || '; ', '')
      || coalesce((SELECT string_agg(coalesce(format('ALTER VIEW %s ALTER COLUMN %I SET DEFAULT ', v_view.view, a.attname) || pg_get_expr(d.adbin, d.adrelid) || '; ', '')
            || coalesce(format('COMMENT ON COLUMN %s.%I IS ', v_view.view, a.attname) || quote_literal(col_description(a.attrelid, a.attnum)) || '; ', ''), '')
          FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE a.attrelid = v_view.view AND a.attnum > 0), ''));
    v_grants := v_grants || coalesce((SELECT string_agg(format('GRANT %s%s ON %s TO %s%s; ', g.privilege_type, g.on_column, v_view.view,
        CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END, CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END), '')
      FROM (SELECT '' AS on_column, (aclexplode(v_view.acl)).* UNION ALL
        SELECT format(' (%I)', a.attname), (aclexplode(a.attacl)).* FROM pg_attribute a WHERE a.attrelid = v_view.view AND a.attacl IS NOT NULL) AS g), '');
  END LOOP;
  EXECUTE v_drops;
  FOR v_one IN SELECT * FROM jsonb_to_recordset(p_changes) AS t ("table" regclass, change text) LOOP
    EXECUTE format('ALTER TABLE %s %s', v_one."table", v_one.change);
  END LOOP;
  FOR n IN 1..cardinality(v_views) LOOP
    EXECUTE v_makes[n];
    -- Default privileges may have given the new view to others.
    FOR v_one IN SELECT DISTINCT g.grantee FROM pg_class c CROSS JOIN LATERAL aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) AS g
        WHERE c.oid = v_views[n]::regclass LOOP
      EXECUTE format('REVOKE ALL ON %s FROM %s CASCADE', v_views[n], CASE WHEN v_one.grantee = 0 THEN 'PUBLIC' ELSE v_one.grantee::regrole::text END);
    END LOOP;
    EXECUTE v_grants[n];
    v_texts := jsonb_set(v_texts, ARRAY[v_views[n], 'is'], to_jsonb(pg_get_viewdef(v_views[n]::regclass)));
  END LOOP;
  RETURN v_texts;
END
$$;
REVOKE ALL ON FUNCTION reclaim.adopt_alter FROM PUBLIC;

-- Gives a view another text, if it is still the one that it was. Returns the new one as PostgreSQL writes it.
CREATE OR REPLACE FUNCTION reclaim.adopt_view(p_view text, p_is text, p_becomes text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
BEGIN
  IF to_regclass(p_view) IS NULL OR pg_get_viewdef(to_regclass(p_view)) <> p_is THEN
    RAISE EXCEPTION 'the view was changed meanwhile';
  END IF;
  EXECUTE format('CREATE OR REPLACE VIEW %s %s AS %s', p_view,
    (SELECT 'WITH (' || array_to_string(reloptions, ', ') || ')' FROM pg_class WHERE oid = p_view::regclass), p_becomes);
  RETURN pg_get_viewdef(p_view::regclass);
END
$$;
REVOKE ALL ON FUNCTION reclaim.adopt_view FROM PUBLIC;

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
  IF v_at.filenode <> pg_relation_filenode(v_table) OR v_at.next_block = 0 THEN
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
  v_new text[];
  v_name text;
  v_table regclass;
  v_model regclass;
  v_at reclaim.adoption;
  v_part record;
BEGIN
  strong := true;
  done := 0;
  total := 0;
  v_new := ARRAY(SELECT one FROM unnest(v_names) WITH ORDINALITY AS u (one, n) WHERE NOT EXISTS (SELECT FROM reclaim.adoption a WHERE a.name = one) ORDER BY n);
  -- Successors of indexes by the sentinel, beside the team's writes. Where tm_delete changes its type they can only be made behind that.
  FOR v_part IN
    SELECT i.*, t.indexrelid IS NOT NULL AS there, coalesce(t.indisvalid, false) AS valid, 'reclaim_adopting_' || i.index::oid AS successor, one
      FROM unnest(v_new) AS one JOIN reclaim.adoption_plan p ON p.name = one
      JOIN pg_attribute a ON a.attrelid = to_regclass('public.' || one) AND a.attname = 'tm_delete' AND a.atttypid = 'timestamptz'::regtype
      CROSS JOIN LATERAL pg_temp.adopt_index_plan(a.attrelid, p.sentinels) AS i
      LEFT JOIN pg_index t ON t.indexrelid = to_regclass('public.reclaim_adopting_' || i.index::oid)
      WHERE i.refused IS NULL
  LOOP
    CONTINUE WHEN v_part.valid;
    what := format('public.%s: index %s', v_part.one, v_part.index_name);
    strong := false;
    IF v_part.there THEN
      statement := format('DROP INDEX CONCURRENTLY public.%I', v_part.successor);
    ELSE
      PERFORM reclaim.adopt_undo(format('DROP INDEX IF EXISTS public.%I', v_part.successor));
      statement := format('CREATE %sINDEX CONCURRENTLY %I%s', CASE WHEN v_part.is_unique THEN 'UNIQUE ' ELSE '' END, v_part.successor, v_part.tail);
    END IF;
    RETURN;
  END LOOP;
  IF v_new <> '{}' THEN
    statement := format('SELECT pg_temp.adopt_begin(%L)', v_new);
    what := format('public.%s: columns', array_to_string(v_new, ', public.'));
    RETURN;
  END IF;

  FOREACH v_name IN ARRAY v_names LOOP
    v_table := to_regclass('public.' || v_name);
    v_model := to_regclass('reclaim.' || v_name);
    IF v_table IS NULL THEN
      RAISE EXCEPTION 'public.%, which is being adopted, is gone', v_name
        USING HINT = 'Bring it back and migrate again, or take the schema back with reclaim migrate --down.';
    END IF;
    SELECT * INTO v_at FROM reclaim.adoption a WHERE a.name = v_name;
    -- Rows that came since the table was changed may be of customers that had no batch yet.
    IF v_at.next_block < (CASE v_at.next_block WHEN 0 THEN pg_relation_size(v_table) / current_setting('block_size')::bigint ELSE v_at.blocks END) THEN
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

    FOR v_part IN SELECT k.name FROM reclaim.adoption_key k JOIN pg_constraint c ON c.conrelid = k.relation AND c.conname = k.name AND NOT c.convalidated
        WHERE k.relation = v_table LOOP
      statement := format('ALTER TABLE %s VALIDATE CONSTRAINT %I', v_table, v_part.name);
      strong := false;
      what := format('%s: foreign key %s', v_table, v_part.name);
      RETURN;
    END LOOP;

    -- Indexes, beside the team's writes. One that is not valid was left by a crash.
    FOR v_part IN
      SELECT w.name, w.definition, w.comment, t.indexrelid IS NOT NULL AS there, coalesce(t.indisvalid, false) AS valid,
          w.comment IS NULL OR obj_description(t.indexrelid, 'pg_class') IS NOT NULL AS described FROM (
          SELECT c.relname AS name, replace(pg_get_indexdef(i.indexrelid), ' ON ' || v_model || ' ', ' ON ' || v_table || ' ') AS definition, NULL AS comment
            FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = v_model AND NOT i.indisprimary
          UNION ALL SELECT x.index_name, x.definition, x.comment FROM reclaim.adoption_index x WHERE x.name = v_name AND x.definition IS NOT NULL) w
        LEFT JOIN (pg_index t JOIN pg_class tc ON tc.oid = t.indexrelid) ON t.indrelid = v_table AND tc.relname = w.name
        ORDER BY w.name
    LOOP
      CONTINUE WHEN v_part.valid AND v_part.described;
      what := format('%s: index %s', v_table, v_part.name);
      strong := false;
      IF v_part.valid THEN
        statement := format('COMMENT ON INDEX public.%I IS %L', v_part.name, v_part.comment);
      ELSIF v_part.there THEN
        statement := format('DROP INDEX CONCURRENTLY public.%I', v_part.name);
      ELSE
        PERFORM reclaim.adopt_undo(format('DROP INDEX IF EXISTS public.%I', v_part.name));
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
-- Going down makes these again.
INSERT INTO reclaim.adoption_undo (statement) SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'reclaim'::regnamespace
  AND proname IN ('adopt_shape', 'adopt_alter', 'adopt_view');
DROP FUNCTION reclaim.adopt_shape(regclass);
DROP FUNCTION reclaim.adopt_alter(jsonb, jsonb);
DROP FUNCTION IF EXISTS reclaim.adopt_alter(regclass, text);
DROP FUNCTION reclaim.adopt_view(text, text, text);
DROP FUNCTION IF EXISTS reclaim.adopt_begin(text);
DROP FUNCTION reclaim.adopt_customers();
DROP FUNCTION reclaim.adopt_rows(text);
DROP FUNCTION reclaim.adopt_switch(text);
DROP FUNCTION reclaim.adopt_undo(text);
DROP FUNCTION reclaim.adopt_account_function(text);
DROP FUNCTION reclaim.step_next();
DROP TABLE reclaim.adoption_index, reclaim.adoption_key, reclaim.adoption_plan;
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
