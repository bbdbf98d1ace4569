-- What stands in the rows that users have in the tables of RECLAIM_OWNERSHIP, as far as this role may read it and it can be emptied.
CREATE OR REPLACE FUNCTION reclaim.ownership_shown(p_users uuid[]) RETURNS TABLE (name text, user_id uuid, shown text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog
AS $$
DECLARE
  v_home record;
BEGIN
  FOR v_home IN SELECT o.name, o.columns, o.mine, (SELECT string_agg(format('o.%I::text', c.name), ', ')
      FROM reclaim.ownership_columns(o.name, o.columns) c WHERE c.cleared IS NOT NULL) AS cells FROM reclaim.ownership_tables(true) o
  LOOP
    BEGIN
      RETURN QUERY EXECUTE format('SELECT %L::text, who, ARRAY[%s]::text[]::text FROM %s o CROSS JOIN LATERAL unnest(ARRAY[%s]) AS who WHERE (%s) AND who = ANY ($1)',
        v_home.name, v_home.cells, v_home.name, (SELECT string_agg(format('o.%I::text::uuid', one), ', ') FROM unnest(v_home.columns) AS one),
        v_home.mine) USING p_users;
    EXCEPTION WHEN insufficient_privilege THEN
      NULL; -- it is kept, as the ledger says
    END;
  END LOOP;
END
$$;
REVOKE ALL ON FUNCTION reclaim.ownership_shown FROM PUBLIC;
