-- What a deletion does to the personal columns of customer_customers or billing_accounts, read from the catalogue as it is now: the
-- value that a column gets, as SQL over its row t, or the reason why it is kept.
--
-- A column that Reclaim does not know becomes null, or else its type's neutral value. In a unique index two deleted rows must not
-- collide: the value has the row's id in it, or another column of the index keeps the rows apart.
CREATE OR REPLACE FUNCTION reclaim.column_clearings(p_table text) RETURNS TABLE (
  name text, type text, known boolean, decision text, value text, reason text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_home regclass := reclaim.table_home(p_table);
  v_fact record;
  -- Columns that keep rows apart, and those that are decided when all of these are known.
  v_apart smallint[] := ARRAY(SELECT a.attnum FROM pg_attribute a WHERE a.attrelid = v_home AND a.attname = 'id');
  v_later smallint[] := '{}';
  v_first boolean;
  v_neutral text[];
  v_candidates text[];
  v_candidate text;
  v_fault text;
BEGIN
  FOREACH v_first IN ARRAY ARRAY[true, false] LOOP
    EXIT WHEN NOT v_first AND v_later = '{}';
    FOR v_fact IN SELECT * FROM reclaim.column_facts(p_table) f WHERE v_first OR f.number = ANY (v_later) LOOP
      name := v_fact.name;
      type := v_fact.type;
      known := v_fact.preferred IS NOT NULL;
      decision := v_fact.decision;
      value := NULL;
      reason := v_fact.obstacle;
      v_candidates := '{}';
      v_neutral := ARRAY(SELECT quote_literal(one) FROM unnest(reclaim.neutral_values(v_fact.base, v_fact.modifier)) AS one);
      IF reason IS NULL AND v_first THEN
        -- A unique column needs more than the same text for all.
        IF known AND (v_fact.uniques = '{}' OR (v_fact.preferred LIKE '%t.id%' AND coalesce(v_fact.width, 60) >= 60)) THEN
          v_candidates := ARRAY[CASE WHEN v_fact.width IS NULL THEN v_fact.preferred
            ELSE format('left(%s, %s)', v_fact.preferred, v_fact.width) END];
        END IF;
        IF NOT v_fact.required AND NOT v_fact.nulls_collide THEN
          v_candidates := v_candidates || 'NULL'::text;
        END IF;
        IF v_fact.uniques = '{}' THEN
          v_candidates := v_candidates || v_neutral;
        END IF;
        v_candidates := array_remove(v_candidates || reclaim.unique_value(v_fact.base, v_fact.width), NULL);
      ELSIF reason IS NULL THEN
        SELECT 'unique index ' || c.relname INTO reason FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
          WHERE i.indexrelid = ANY (v_fact.uniques) AND NOT i.indkey::smallint[] && v_apart ORDER BY c.relname LIMIT 1;
        IF reason IS NULL THEN
          v_candidates := v_neutral;
        END IF;
      END IF;
      v_fault := NULL;
      FOREACH v_candidate IN ARRAY v_candidates LOOP
        reason := reclaim.value_fault(v_home, v_fact.number, name, type, v_candidate);
        IF reason IS NULL THEN
          value := v_candidate;
          EXIT;
        END IF;
        v_fault := CASE WHEN v_fault LIKE 'check%' THEN v_fault ELSE reason END;
      END LOOP;
      IF value IS NULL AND v_fact.obstacle IS NULL AND v_first AND v_fact.uniques <> '{}' THEN
        v_later := v_later || v_fact.number;
        CONTINUE;
      END IF;
      IF value = 'NULL' OR value LIKE '%t.id%' THEN
        v_apart := v_apart || v_fact.number;
      END IF;
      reason := CASE WHEN value IS NULL THEN coalesce(v_fault, reason) END;
      RETURN NEXT;
    END LOOP;
  END LOOP;
END
$$;
REVOKE ALL ON FUNCTION reclaim.column_clearings FROM PUBLIC;
