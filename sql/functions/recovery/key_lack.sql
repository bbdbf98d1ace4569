-- The statement that lets this role look for rows by a foreign key; null when it can already. A large table without an
-- index counts as one that cannot be looked at, unless p_any_size: anybody may ask for a code, and none of them may have
-- a table read from end to end.
CREATE OR REPLACE FUNCTION reclaim.key_lack(p_key oid, p_any_size boolean) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_key record;
  v_side record;
  v_lacking text;
BEGIN
  SELECT k.conrelid, k.conkey, k.confrelid, k.confkey, c.relkind INTO v_key
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid WHERE k.oid = p_key;
  FOR v_side IN SELECT rel, columns, n.nspname, n.oid AS schema
    FROM (VALUES (v_key.confrelid, v_key.confkey), (v_key.conrelid, v_key.conkey)) AS side (rel, columns)
    JOIN pg_class c ON c.oid = rel JOIN pg_namespace n ON n.oid = c.relnamespace
  LOOP
    IF NOT has_schema_privilege(v_side.schema, 'USAGE') THEN
      RETURN format('GRANT USAGE ON SCHEMA %I TO %I', v_side.nspname, current_user);
    END IF;
    SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) INTO v_lacking FROM pg_attribute a
      WHERE a.attrelid = v_side.rel AND a.attnum = ANY (v_side.columns) AND NOT has_column_privilege(a.attrelid, a.attnum, 'SELECT');
    IF v_lacking IS NOT NULL THEN
      RETURN format('GRANT SELECT (%s) ON %s TO %I', v_lacking, v_side.rel::regclass, current_user);
    END IF;
    IF NOT reclaim.sees_all_rows(v_side.rel, 'SELECT') THEN
      RETURN reclaim.row_security_mend(v_side.rel, 'SELECT');
    END IF;
  END LOOP;
  IF p_any_size OR (v_key.relkind = 'r' AND pg_relation_size(v_key.conrelid) <= 1024 * 1024) OR EXISTS (
      SELECT FROM pg_index i WHERE i.indrelid = v_key.conrelid AND i.indisvalid AND i.indpred IS NULL
        AND i.indkey[0] = ANY (v_key.conkey)) THEN
    RETURN NULL;
  END IF;
  RETURN (SELECT format('CREATE INDEX CONCURRENTLY ON %s (%s)', v_key.conrelid::regclass,
      string_agg(quote_ident(a.attname), ', ' ORDER BY array_position(v_key.conkey, a.attnum)))
    FROM pg_attribute a WHERE a.attrelid = v_key.conrelid AND a.attnum = ANY (v_key.conkey));
END
$$;
REVOKE ALL ON FUNCTION reclaim.key_lack FROM PUBLIC;
