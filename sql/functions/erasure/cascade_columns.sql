-- What the catalogue says about the columns that a participant empties. once: in a unique index; obstacle: why it cannot be
-- emptied. A column that is generated from others goes with them.
CREATE OR REPLACE FUNCTION reclaim.cascade_columns(p reclaim.cascade_participants) RETURNS TABLE (
  number smallint, name text, type text, base oid, modifier integer, category "char", width integer, required boolean,
  once boolean, nulls_collide boolean, obstacle text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan -- else planned again for each page
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  -- An index on expressions depends on its columns. PostgreSQL 14 has no indnullsnotdistinct.
  WITH unique_index AS MATERIALIZED (
    SELECT coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false) AS nulls_collide,
      i.indkey::smallint[] || ARRAY(SELECT d.refobjsubid::smallint FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
        AND d.objid = i.indexrelid AND d.refclassid = 'pg_class'::regclass AND d.refobjid = i.indrelid AND d.refobjsubid > 0) AS columns
    FROM pg_index i WHERE i.indrelid = to_regclass(p.table_name) AND i.indisunique
  ), key AS MATERIALIZED (
    SELECT CASE k.contype WHEN 'p' THEN 'primary key' WHEN 'x' THEN 'exclusion constraint ' || k.conname
        ELSE 'foreign key ' || k.conname END AS words, k.contype IN ('p', 'f') AS tells,
      k.contype <> 'p' AND k.confrelid IS DISTINCT FROM to_regclass(p.table_name) AS takes_null,
      CASE WHEN k.conrelid = to_regclass(p.table_name) THEN k.conkey ELSE '{}' END
        || CASE WHEN k.confrelid = to_regclass(p.table_name) THEN k.confkey ELSE '{}' END AS columns
    FROM pg_constraint k WHERE k.contype IN ('p', 'f', 'x') AND to_regclass(p.table_name) IN (k.conrelid, k.confrelid)
    UNION ALL
    SELECT 'partition key', true, false, t.partattrs::smallint[] FROM pg_partitioned_table t WHERE t.partrelid = to_regclass(p.table_name))
  SELECT a.attnum, a.attname::text, format_type(a.atttypid, a.atttypmod), base.oid, base.typmod, b.typcategory,
    CASE WHEN base.oid IN ('varchar'::regtype, 'bpchar'::regtype) AND base.typmod > 4 THEN base.typmod - 4 END,
    a.attnotnull OR base.required, EXISTS (SELECT FROM unique_index u WHERE a.attnum = ANY (u.columns)),
    EXISTS (SELECT FROM unique_index u WHERE a.attnum = ANY (u.columns) AND u.nulls_collide),
    (SELECT k.words FROM key k WHERE a.attnum = ANY (k.columns)
        AND NOT (k.takes_null AND NOT a.attnotnull AND (NOT k.tells OR a.attname = ANY (p.scrub_columns))) ORDER BY k.words DESC LIMIT 1)
  FROM pg_attribute a CROSS JOIN LATERAL (
    WITH RECURSIVE below AS (
      SELECT t.oid, t.typtype, t.typbasetype, t.typtypmod, t.typnotnull, a.atttypmod AS typmod FROM pg_type t
      WHERE t.oid = a.atttypid
      UNION ALL
      SELECT t.oid, t.typtype, t.typbasetype, t.typtypmod, t.typnotnull, below.typtypmod FROM below
      JOIN pg_type t ON t.oid = below.typbasetype WHERE below.typtype = 'd')
    SELECT bool_or(below.typnotnull) AS required, max(below.oid) FILTER (WHERE below.typtype <> 'd') AS oid,
      max(below.typmod) FILTER (WHERE below.typtype <> 'd') AS typmod FROM below) AS base
  JOIN pg_type b ON b.oid = base.oid
  WHERE a.attrelid = to_regclass(p.table_name) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    AND a.attname NOT IN (p.customer_column, coalesce(p.soft_delete_column, ''))
    AND (a.attname = ANY (p.scrub_columns) OR '*' = ANY (p.scrub_columns) AND a.attidentity = '' AND base.oid <> 'uuid'::regtype
      AND a.attname NOT IN ('status', 'state', 'type', 'kind', 'direction', 'method', 'version', 'tm_create', 'tm_update', 'tm_delete',
        'created_at', 'updated_at', 'deleted_at')
      -- Of keys only words may be personal.
      AND (b.typcategory = 'S' OR NOT EXISTS (SELECT FROM key k WHERE k.tells AND a.attnum = ANY (k.columns))))
  ORDER BY a.attnum;
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_columns FROM PUBLIC;
