-- What the check of an adoption (sql/adoption_check.sql) and the adoption itself (step 0022) must judge alike. Made for the session
-- that runs one of them.

-- The times that the team writes into tm_delete for "not deleted", as in reclaim.is_sentinel, the usual one first; null when rows that
-- are not deleted have null already. Reads the table, under no lock that others would wait for.
CREATE OR REPLACE FUNCTION pg_temp.adopt_sentinels(p_table regclass) RETURNS timestamptz[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
DECLARE
  v_preset text;
  v_times timestamptz[];
BEGIN
  SELECT coalesce(pg_get_expr(d.adbin, d.adrelid), 'NULL') INTO v_preset FROM pg_attribute a
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.attgenerated = ''
    WHERE a.attrelid = p_table AND a.attname = 'tm_delete' AND NOT a.attisdropped AND a.atttypid IN ('timestamp'::regtype, 'timestamptz'::regtype);
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  EXECUTE format('SELECT array_agg(t ORDER BY n DESC) FROM (SELECT t, sum(n) AS n FROM (SELECT (%s)::timestamptz AS t, 9e18 AS n
      UNION ALL (SELECT tm_delete, count(*) FROM %s GROUP BY 1 HAVING tm_delete NOT BETWEEN ''1970-01-02'' AND now() + interval ''1 year'' LIMIT 20)) AS f
    WHERE t NOT BETWEEN ''1970-01-02'' AND now() + interval ''1 year'' GROUP BY t) AS s', v_preset, p_table) INTO v_times;
  RETURN v_times;
END
$$;

-- An expression or a view, as PostgreSQL writes it, changed to say the same when "not deleted" is null and while it is a sentinel:
-- a comparison that is true of one gets OR tm_delete IS NULL, and with p_strict one that is false of it gets AND tm_delete
-- IS NOT NULL, so that it is false where it was, not null. Null when tm_delete stands where that cannot be judged.
CREATE OR REPLACE FUNCTION pg_temp.adopt_null_safe(p_text text, p_sentinels timestamptz[], p_strict boolean) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
DECLARE
  c_type text := '(?:date|timestamp(?:\(\d\))? with(?:out)? time zone)';
  c_ref text := '(?:(?:\w+|"[^"]+")\.)?tm_delete';
  c_column text := format('(?:%s|\(%1$s\)::%s)', c_ref, c_type);
  c_value text := format('(?:''[^'']*''::%s|now\(\)|CURRENT_TIMESTAMP|LOCALTIMESTAMP|CURRENT_DATE|(?:clock|statement|transaction)_timestamp\(\)'
    '|timezone\(''[^'']*''::text, now\(\)\)|\(now\(\) AT TIME ZONE ''[^'']*''::text\))', c_type);
  c_atom text := format('(?:\(%1$s (?:=|<>|<=|>=|<|>) %2$s\)|\(%2$s (?:=|<>|<=|>=|<|>) %1$s\))', c_column, c_value);
  -- Right already: IS NULL beside a comparison, a far time in the place of null, IS NULL itself.
  c_right text := format('(\(\(%1$s IS NULL\) OR %2$s\)|\(%2$s OR \(%1$s IS NULL\)\)|COALESCE\(%3$s, ''(?:infinity|(?:[3-9]\d|2[1-9])\d\d-[^'']*)''::%4$s\)|\(%1$s IS NULL\))',
    c_ref, c_atom, c_column, c_type);
  v_left text := p_text;
  v_kept text[] := '{}';
  v_whole text;
  v_ref text;
  v_live boolean;
BEGIN
  LOOP
    v_whole := (regexp_match(v_left, c_right))[1];
    IF v_whole IS NOT NULL THEN
      v_kept := v_kept || v_whole;
    ELSE
      v_whole := (regexp_match(v_left, format('(%s)', c_atom)))[1];
      EXIT WHEN v_whole IS NULL;
      v_ref := (regexp_match(v_whole, format('(%s)', c_ref)))[1];
      EXECUTE format('SELECT bool_or(%s) FROM unnest($1) AS sentinel', replace(v_whole, v_ref, 'sentinel')) INTO v_live USING p_sentinels;
      v_kept := v_kept || CASE WHEN v_live THEN format('((%s IS NULL) OR %s)', v_ref, v_whole)
        WHEN p_strict THEN format('((%s IS NOT NULL) AND %s)', v_ref, v_whole) ELSE v_whole END;
    END IF;
    v_left := replace(v_left, v_whole, chr(1) || cardinality(v_kept) || chr(1));
  END LOOP;
  -- Shown or sorted by, it matters to no condition. A row that an outer join adds has no tm_delete either.
  IF regexp_replace(v_left, format('(?:(?:SELECT|DISTINCT|,)\s+%s(?: AS (?:\w+|"[^"]+"))?(?=,|\s)|(?:ORDER|GROUP) BY [^()\n]*)', c_ref), '', 'g') ~ '\mtm_delete\M'
      OR cardinality(v_kept) > 0 AND v_left ~ '\m(LEFT|RIGHT|FULL) JOIN\M' THEN
    RETURN NULL;
  END IF;
  FOR n IN REVERSE cardinality(v_kept)..1 LOOP
    v_left := replace(v_left, chr(1) || n || chr(1), v_kept[n]);
  END LOOP;
  RETURN v_left;
END
$$;

-- Indexes that would be on nothing, or let duplicates in, once "not deleted" is null: tm_delete is in their keys or their predicate.
-- `tail` is the rest of the new CREATE INDEX behind its name, `keys` what must be unique WHERE `predicate`. Where `refused` says why,
-- there is none.
CREATE OR REPLACE FUNCTION pg_temp.adopt_index_plan(p_table regclass, p_sentinels timestamptz[])
RETURNS TABLE (index regclass, index_name name, is_unique boolean, constraint_name name, tail text, keys text, predicate text, refused text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
DECLARE
  v_index record;
  v_type text;
  v_live text;
  v_key text;
  c_key text := 'tm_delete(?: DESC)?(?: NULLS (?:FIRST|LAST))?';
BEGIN
  SELECT format_type(atttypid, NULL) INTO v_type FROM pg_attribute WHERE attrelid = p_table AND attname = 'tm_delete' AND NOT attisdropped;
  IF p_sentinels IS NULL OR v_type IS NULL THEN
    RETURN;
  END IF;
  v_live := format('((tm_delete IS NULL) OR (tm_delete > %L::%s)%s)', to_char(now() + interval '1 year', 'YYYY-MM-DD 00:00:00'), v_type,
    CASE WHEN '1970-01-02' > ANY (p_sentinels) THEN format(' OR (tm_delete < %L::%s)', '1970-01-02 00:00:00', v_type) ELSE '' END);
  FOR v_index IN
    SELECT i.*, c.relname, t.conname, t.contype, coalesce(t.condeferrable, false) AS deferrable, pg_get_indexdef(i.indexrelid) AS definition,
        pg_get_expr(i.indpred, i.indrelid) AS pred, coalesce(to_jsonb(i)->>'indnullsnotdistinct', 'false') = 'true' AS nulls_equal,
        EXISTS (SELECT FROM generate_series(0, i.indnkeyatts - 1) AS n JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[n] AND a.attname = 'tm_delete') AS in_keys,
        coalesce(pg_get_expr(i.indexprs, i.indrelid), '') AS expressions,
        EXISTS (SELECT FROM pg_constraint f WHERE f.contype = 'f' AND f.conindid = i.indexrelid) AS is_referred
      FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
      LEFT JOIN pg_constraint t ON t.conindid = i.indexrelid AND t.conrelid = i.indrelid AND t.contype IN ('p', 'u', 'x')
      WHERE i.indrelid = p_table AND c.relname !~ '^reclaim_adopting_' AND pg_get_indexdef(i.indexrelid) ~ '\mtm_delete\M'
  LOOP
    index := v_index.indexrelid; index_name := v_index.relname; is_unique := v_index.indisunique; constraint_name := v_index.conname;
    refused := NULL; tail := NULL; keys := NULL;
    predicate := pg_temp.adopt_null_safe(v_index.pred, p_sentinels, false);
    CONTINUE WHEN v_index.in_keys AND predicate = v_index.pred AND predicate ~ '\mtm_delete\M'; -- of deleted rows only
    IF v_index.in_keys AND v_index.indisunique AND NOT v_index.nulls_equal AND v_index.contype IS DISTINCT FROM 'p' THEN
      predicate := CASE WHEN v_index.pred IS NULL THEN v_live WHEN predicate ~ '\mtm_delete\M' THEN predicate ELSE format('(%s AND %s)', predicate, v_live) END;
    ELSIF predicate IS NOT DISTINCT FROM v_index.pred AND v_index.contype IS DISTINCT FROM 'p' AND (v_index.contype IS DISTINCT FROM 'x' OR NOT v_index.in_keys)
        AND (NOT is_unique OR pg_temp.adopt_null_safe(v_index.expressions, p_sentinels, false) IS NOT DISTINCT FROM v_index.expressions) THEN
      CONTINUE;
    END IF;
    refused := CASE WHEN v_index.contype = 'p' THEN 'it is the primary key, and tm_delete of rows that are not deleted becomes null'
      WHEN v_index.contype = 'x' THEN 'it is an exclusion constraint by the sentinel in tm_delete, which becomes null'
      WHEN v_index.pred IS NOT NULL AND predicate IS NULL OR pg_temp.adopt_null_safe(v_index.expressions, p_sentinels, false) IS DISTINCT FROM v_index.expressions
        THEN 'it is by tm_delete, whose sentinel becomes null, in a way that cannot be carried over'
      WHEN v_index.deferrable THEN 'it is deferrable and by the sentinel in tm_delete, which becomes null'
      WHEN v_index.is_referred THEN 'a foreign key refers to it, and the sentinel in tm_delete becomes null'
      WHEN v_index.indisreplident THEN 'it is the replica identity, and by the sentinel in tm_delete, which becomes null' END;
    IF refused IS NULL THEN
      tail := substr(v_index.definition, length(CASE WHEN is_unique THEN 'CREATE UNIQUE INDEX ' ELSE 'CREATE INDEX ' END || quote_ident(v_index.relname)) + 1);
      IF v_index.pred IS NOT NULL THEN
        tail := left(tail, -length(' WHERE ' || v_index.pred));
      END IF;
      IF v_index.in_keys AND is_unique THEN
        v_key := regexp_replace(tail, format(', %s(?=[,)])', c_key), '');
        tail := CASE WHEN v_key = tail THEN regexp_replace(tail, format('\(%s, ', c_key), '(') ELSE v_key END;
      END IF;
      tail := tail || ' WHERE ' || predicate;
      keys := (SELECT string_agg(one, ', ') FROM (SELECT pg_get_indexdef(index, n, false) AS one FROM generate_series(1, v_index.indnkeyatts) AS n) AS k WHERE one <> 'tm_delete');
      IF keys IS NULL AND is_unique THEN
        refused := 'it is on tm_delete alone, whose sentinel becomes null';
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
END
$$;

-- Views, the lower first, in which tm_delete of these tables is; `again` says the same once the sentinel is null, or is null when that
-- cannot be judged.
CREATE OR REPLACE FUNCTION pg_temp.adopt_view_plan(p_tables regclass[], p_sentinels timestamptz[])
RETURNS TABLE (view regclass, relkind "char", definition text, again text)
LANGUAGE sql STABLE SET search_path = pg_catalog SET timezone = 'UTC'
AS $$
  WITH RECURSIVE uses AS (
    SELECT r.ev_class AS view, a.attrelid AS source FROM pg_depend d
      JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid AND r.ev_class <> d.refobjid
      JOIN pg_attribute a ON d.refclassid = 'pg_class'::regclass AND a.attrelid = d.refobjid AND a.attnum = d.refobjsubid AND a.attname = 'tm_delete'),
  above (view, depth) AS (
    SELECT view, 1 FROM uses WHERE source = ANY (p_tables)
    UNION SELECT u.view, a.depth + 1 FROM above a JOIN uses u ON u.source = a.view AND a.depth < 50),
  found AS (SELECT c.oid::regclass AS view, c.relkind, max(a.depth) AS depth, pg_get_viewdef(c.oid) AS definition FROM above a
    JOIN pg_class c ON c.oid = a.view AND c.relkind IN ('v', 'm') AND c.relnamespace <> coalesce(to_regnamespace('reclaim'), 0) GROUP BY c.oid)
  SELECT f.view, f.relkind, f.definition, CASE
      WHEN EXISTS (SELECT FROM uses u WHERE u.view = f.view AND u.source <> ALL (p_tables) AND u.source NOT IN (SELECT above.view FROM above)) THEN NULL
      WHEN f.definition ~ 'tm_delete AS ' AND EXISTS (SELECT FROM pg_depend d JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
        AND r.ev_class <> f.view WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = f.view) THEN NULL
      ELSE pg_temp.adopt_null_safe(f.definition, p_sentinels, true) END
    FROM found f WHERE p_sentinels IS NOT NULL ORDER BY f.depth
$$;
