-- What an erasure does to the columns of a table whose rows stay, read from the catalogue as it is now: the value that a column
-- gets, as SQL over its row t, or the reason why it is kept. '*' among scrub_columns means every column but keys, UUIDs and
-- those in which every service has the same few values or a time of its own.
--
-- A column becomes null, or else its type's neutral value. In a unique index the value has the row's primary key in it.
CREATE OR REPLACE FUNCTION reclaim.cascade_clearings(p reclaim.cascade_participants) RETURNS TABLE (
  name text, type text, value text, reason text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_table regclass := to_regclass(p.table_name);
  v_row text; -- what tells a row from all others, as a uuid
  v_fact record;
  v_candidate text;
  v_fault text;
BEGIN
  IF v_table IS NULL OR p.scrub_columns = '{}' THEN
    RETURN;
  END IF;
  IF p.id_of = 'account' THEN -- tables of Reclaim's own, on the path of every deletion: texts without a check
    RETURN QUERY SELECT a.attname::text, 'text', CASE WHEN NOT a.attnotnull THEN 'NULL'
        WHEN EXISTS (SELECT FROM pg_index i WHERE i.indrelid = v_table AND i.indisunique AND a.attnum = ANY (i.indkey))
          THEN '''deleted_'' || t.id' ELSE '''''' END, NULL::text
      FROM pg_attribute a WHERE a.attrelid = v_table AND a.attname = ANY (p.scrub_columns) AND NOT a.attisdropped;
    RETURN;
  END IF;
  SELECT CASE WHEN bool_and(a.atttypid = 'uuid'::regtype) AND count(*) = 1 THEN min(format('t.%I', a.attname))
      ELSE format('md5(concat_ws('':'', %s))::uuid', string_agg(format('t.%I', a.attname), ', ' ORDER BY a.attnum)) END
    INTO v_row FROM pg_index i JOIN pg_attribute a ON a.attrelid = v_table AND a.attnum = ANY (i.indkey::smallint[])
    WHERE i.indrelid = v_table AND i.indisprimary HAVING count(*) > 0;
  v_row := coalesce(v_row, 'gen_random_uuid()');
  FOR v_fact IN SELECT * FROM reclaim.cascade_columns(p) LOOP
    name := v_fact.name;
    type := v_fact.type;
    value := NULL;
    reason := v_fact.obstacle;
    v_fault := NULL;
    FOREACH v_candidate IN ARRAY CASE WHEN reason IS NOT NULL THEN '{}' ELSE array_remove(
        CASE WHEN v_fact.required OR v_fact.nulls_collide THEN '{}' ELSE ARRAY['NULL'] END
        || CASE WHEN v_fact.once THEN '{}' ELSE ARRAY(SELECT quote_literal(one) FROM unnest(reclaim.neutral_values(v_fact.base, v_fact.modifier)) AS one) END
        || reclaim.unique_value(v_fact.base, v_fact.width)
        || CASE WHEN v_fact.category = 'S' AND coalesce(v_fact.width, 60) >= 60 THEN '''deleted_'' || t.id || ''@removed.invalid''' END, NULL) END
    LOOP
      -- Without a primary key only a value that can be recognised later is of use.
      CONTINUE WHEN v_row = 'gen_random_uuid()' AND v_candidate LIKE '%t.id%' AND v_candidate NOT LIKE '''deleted\_%';
      v_fault := reclaim.value_fault(v_table, v_fact.number, name, type, v_candidate);
      IF v_fault IS NULL THEN
        value := replace(v_candidate, 't.id', v_row);
        EXIT;
      END IF;
      reason := CASE WHEN reason LIKE 'check%' THEN reason ELSE v_fault END;
    END LOOP;
    reason := CASE WHEN value IS NULL THEN coalesce(reason, 'it must be unique, and no value of its type can replace it') END;
    RETURN NEXT;
  END LOOP;
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_clearings FROM PUBLIC;
