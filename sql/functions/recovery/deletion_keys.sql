-- The foreign keys with which rows of other tables can stop the deletion of a user: those to auth.users, or to a table
-- whose rows go with the user, that do not let their rows go too. Keys of p_owned ('schema.table.column', as in
-- RECLAIM_OWNERSHIP) are left out: who has rows there is no orphan.
--
-- `query` finds in $1, an array of users, those whom the key stops; it needs what `lack` says (reclaim.key_lack). Rows that
-- another key has deleted with the user before this one is checked do not count. PostgreSQL goes through keys in the order
-- of their distance from auth.users, and on one row in the order of their triggers' names; where that leaves it open, the
-- deletion itself decides. A table is followed along the shortest way from auth.users.
CREATE OR REPLACE FUNCTION reclaim.deletion_keys(p_owned text[], p_any_size boolean)
RETURNS TABLE (name text, home text, columns text, parent text, parent_columns text, owned_as text, query text, lack text)
LANGUAGE plpgsql STABLE ROWS 10 SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
  -- Ways from auth.users along keys that cascade: the table at the end, the way and the key by which it is reached.
  v_table oid[] := ARRAY[to_regclass('auth.users')::oid];
  v_before integer[] := '{0}';
  v_last oid[] := '{0}';
  v_depth integer[] := '{0}';
  -- How the tables of a way are joined; only for ways that are needed.
  v_needed integer[] := '{}';
  v_alias text[] := '{u}';
  v_from text[] := '{NULL}';
  v_where text[] := '{NULL}';
  v_lack text[] := '{NULL}';
  -- Keys on those ways: where they begin, which they are, and whether they cascade.
  v_at integer[] := '{}';
  v_key oid[] := '{}';
  v_stops boolean[] := '{}';
  v_child oid[] := '{}';
  v_trigger text[] := '{}';
  v_deferred boolean[] := '{}';
  v_way integer := 1;
  i integer;
  v_k record;
  v_gone text;
BEGIN
  IF v_table[1] IS NULL THEN
    RETURN;
  END IF;
  WHILE v_way <= cardinality(v_table) LOOP
    -- A key has triggers on the table it refers to, and those are indexed by table.
    FOR v_k IN
      SELECT k.oid, k.conrelid, k.confdeltype IN ('a', 'r') OR k.confdeltype IN ('n', 'd') AND EXISTS (
          SELECT FROM pg_attribute a WHERE a.attrelid = k.conrelid AND a.attnotnull
            AND (k.confdeltype = 'n' OR NOT a.atthasdef)
            AND a.attnum = ANY (CASE WHEN jsonb_typeof(to_jsonb(k) -> 'confdelsetcols') = 'array'
              THEN ARRAY(SELECT jsonb_array_elements_text(to_jsonb(k) -> 'confdelsetcols')::smallint) ELSE k.conkey END)) AS stops,
        k.confdeltype = 'c' AS cascades, t.tgname, k.condeferred
      FROM pg_trigger t JOIN pg_constraint k ON k.oid = t.tgconstraint
      WHERE t.tgrelid = v_table[v_way] AND t.tgisinternal AND t.tgtype & 8 <> 0 -- on DELETE
        AND k.contype = 'f' AND k.conparentid = 0 AND k.confrelid = v_table[v_way]
        AND NOT (v_way = 1 AND cardinality(k.conkey) = 1 AND EXISTS (SELECT FROM pg_class c
          JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.conkey[1]
          WHERE c.oid = k.conrelid AND n.nspname || '.' || c.relname || '.' || a.attname = ANY (p_owned)))
      ORDER BY k.oid
    LOOP
      CONTINUE WHEN NOT v_k.stops AND NOT v_k.cascades;
      v_at := v_at || v_way;
      v_key := v_key || v_k.oid;
      v_stops := v_stops || v_k.stops;
      v_child := v_child || v_k.conrelid;
      v_trigger := v_trigger || v_k.tgname::text;
      v_deferred := v_deferred || v_k.condeferred;
      CONTINUE WHEN v_k.stops OR v_depth[v_way] >= 8 OR EXISTS (
        SELECT FROM unnest(v_table, v_depth) AS w (t, depth) WHERE w.t = v_k.conrelid AND w.depth <= v_depth[v_way]);
      v_table := v_table || v_k.conrelid;
      v_before := v_before || v_way;
      v_last := v_last || v_k.oid;
      v_depth := v_depth || v_depth[v_way] + 1;
    END LOOP;
    v_way := v_way + 1;
  END LOOP;
  IF NOT true = ANY (v_stops) THEN
    RETURN;
  END IF;

  -- Ways to keys that stop a deletion, and to those that delete from the same tables.
  FOR i IN 1 .. cardinality(v_key) LOOP
    v_way := v_at[i];
    WHILE v_way > 1 AND NOT v_way = ANY (v_needed) AND (v_stops[i] OR EXISTS (
        SELECT FROM unnest(v_child, v_stops) AS other (child, stops) WHERE other.child = v_child[i] AND other.stops)) LOOP
      v_needed := v_needed || v_way;
      v_way := v_before[v_way];
    END LOOP;
  END LOOP;
  FOR i IN SELECT one FROM unnest(v_needed) AS one ORDER BY one LOOP
    v_way := v_before[i];
    v_alias[i] := 'k' || v_last[i];
    v_from[i] := concat_ws(', ', v_from[v_way], format('%s %s', v_table[i]::regclass, v_alias[i]));
    v_where[i] := concat_ws(' AND ', v_where[v_way], reclaim.key_condition(v_last[i], v_alias[v_way], v_alias[i]));
    v_lack[i] := coalesce(v_lack[v_way], reclaim.key_lack(v_last[i], p_any_size));
  END LOOP;

  FOR i IN 1 .. cardinality(v_key) LOOP
    CONTINUE WHEN NOT v_stops[i];
    v_way := v_at[i];
    lack := coalesce(v_lack[v_way], reclaim.key_lack(v_key[i], p_any_size));
    v_gone := NULL;
    FOR j IN 1 .. cardinality(v_key) LOOP
      CONTINUE WHEN v_stops[j] OR v_child[j] <> v_child[i] OR NOT v_deferred[i] AND (v_depth[v_at[j]] > v_depth[v_way]
        OR v_at[j] = v_way AND v_trigger[j] COLLATE "C" > v_trigger[i]);
      lack := coalesce(lack, v_lack[v_at[j]], reclaim.key_lack(v_key[j], p_any_size));
      v_gone := concat_ws('', v_gone, CASE WHEN v_at[j] = 1
        THEN format(' AND (%s) IS NOT TRUE', reclaim.key_condition(v_key[j], 'u', 's'))
        ELSE format(' AND NOT EXISTS (SELECT FROM %s WHERE %s AND %s)', v_from[v_at[j]], v_where[v_at[j]],
          reclaim.key_condition(v_key[j], v_alias[v_at[j]], 's')) END);
    END LOOP;
    SELECT k.conname, v_child[i]::regclass::text, string_agg(quote_ident(c.attname), ', ' ORDER BY pair.place),
        k.confrelid::regclass::text, string_agg(quote_ident(p.attname), ', ' ORDER BY pair.place),
        CASE WHEN v_way = 1 AND k.confkey = (SELECT ARRAY[a.attnum] FROM pg_attribute a WHERE a.attrelid = v_table[1] AND a.attname = 'id')
          THEN n.nspname || '.' || r.relname || '.' || min(c.attname) END
      INTO name, home, columns, parent, parent_columns, owned_as
      FROM pg_constraint k JOIN pg_class r ON r.oid = k.conrelid JOIN pg_namespace n ON n.oid = r.relnamespace
      CROSS JOIN unnest(k.conkey, k.confkey) WITH ORDINALITY AS pair (child, parent, place)
      JOIN pg_attribute c ON c.attrelid = k.conrelid AND c.attnum = pair.child
      JOIN pg_attribute p ON p.attrelid = k.confrelid AND p.attnum = pair.parent
      WHERE k.oid = v_key[i] GROUP BY k.oid, r.relname, n.nspname;
    query := format('SELECT u.id, %L AS home FROM auth.users u WHERE u.id = ANY ($1) AND EXISTS (SELECT FROM %s WHERE %s%s)',
      home, concat_ws(', ', v_from[v_way], home || ' s'),
      concat_ws(' AND ', v_where[v_way], reclaim.key_condition(v_key[i], v_alias[v_way], 's')), v_gone);
    RETURN NEXT;
  END LOOP;
END
$$;
REVOKE ALL ON FUNCTION reclaim.deletion_keys FROM PUBLIC;
