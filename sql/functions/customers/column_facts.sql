-- What the catalogue says about the personal columns of customer_customers or billing_accounts: those that Reclaim knows as such,
-- with the value that takes their place, and all that it does not know.
CREATE OR REPLACE FUNCTION reclaim.column_facts(p_table text) RETURNS TABLE (
  number smallint, name text, type text,
  base oid, modifier integer,   -- the type below the domains
  width integer,               -- how many characters it may have
  preferred text,              -- what takes its place, as SQL; null: Reclaim does not know the column
  decision text, required boolean,
  obstacle text,               -- why it cannot be cleared; null: no reason
  uniques oid[], nulls_collide boolean) -- the unique indexes it is in; whether two rows may have null there
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
  -- An index on expressions depends on its columns; keys that are plain columns are in indkey. PostgreSQL 14 has no
  -- indnullsnotdistinct.
  WITH unique_index AS MATERIALIZED (
    SELECT i.indexrelid AS oid, coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false) AS nulls_collide,
      (i.indkey::smallint[])[0:i.indnkeyatts - 1] || CASE WHEN i.indexprs IS NULL THEN '{}' ELSE ARRAY(
        SELECT d.refobjsubid::smallint FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
          AND d.refclassid = 'pg_class'::regclass AND d.refobjid = i.indrelid AND d.refobjsubid > 0) END AS columns
    FROM pg_index i WHERE i.indrelid = reclaim.table_home(p_table) AND i.indisunique)
  SELECT a.attnum, a.attname::text, format_type(a.atttypid, a.atttypmod), base.oid, base.typmod,
    CASE WHEN base.oid IN ('varchar'::regtype, 'bpchar'::regtype) AND base.typmod > 4 THEN base.typmod - 4 END,
    personal.value, d.decision, a.attnotnull OR base.required,
    CASE WHEN d.decision = 'keep' AND personal.value IS NULL THEN concat_ws(': ', 'by decision', nullif(d.reason, ''))
      WHEN a.attgenerated <> '' THEN 'generated from other columns'
      WHEN a.attidentity <> '' THEN 'identity'
      WHEN EXISTS (SELECT FROM pg_partitioned_table WHERE partrelid = home.oid AND a.attnum = ANY (partattrs::smallint[]))
        THEN 'partition key'
      ELSE (SELECT CASE WHEN k.contype = 'x' THEN 'exclusion constraint '
            WHEN k.conrelid = home.oid AND a.attnum = ANY (k.conkey) THEN 'foreign key '
            ELSE 'a foreign key refers to it: ' END || k.conname
        FROM pg_constraint k WHERE (k.contype = 'f' AND k.confrelid = home.oid AND a.attnum = ANY (k.confkey))
          OR (k.contype IN ('f', 'x') AND k.conrelid = home.oid AND a.attnum = ANY (k.conkey) AND (a.attnotnull OR base.required))
        ORDER BY k.conname LIMIT 1) END,
    ARRAY(SELECT unique_index.oid FROM unique_index WHERE a.attnum = ANY (unique_index.columns)),
    EXISTS (SELECT FROM unique_index WHERE a.attnum = ANY (unique_index.columns) AND unique_index.nulls_collide)
  FROM (SELECT reclaim.table_home(p_table)::oid AS oid) AS home
  JOIN pg_attribute a ON a.attrelid = home.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN (VALUES ('customer_customers', 'name', '''deleted_user_'' || t.id'),
      ('customer_customers', 'email', '''deleted_'' || t.id || ''@removed.invalid'''), ('customer_customers', 'detail', ''''''),
      ('customer_customers', 'phone_number', ''''''), ('customer_customers', 'address', ''''''),
      ('customer_customers', 'webhook_method', ''''''), ('customer_customers', 'webhook_uri', ''''''),
      ('billing_accounts', 'name', '''''')) AS personal (relation, name, value)
    ON personal.relation = p_table AND personal.name = a.attname
  LEFT JOIN reclaim.column_decisions d ON d.table_name = p_table AND d.column_name = a.attname
  CROSS JOIN LATERAL (
    WITH RECURSIVE below AS (
      SELECT t.oid, t.typtype, t.typbasetype, t.typtypmod, t.typnotnull, a.atttypmod AS typmod FROM pg_type t
      WHERE t.oid = a.atttypid
      UNION ALL
      SELECT t.oid, t.typtype, t.typbasetype, t.typtypmod, t.typnotnull, below.typtypmod FROM below
      JOIN pg_type t ON t.oid = below.typbasetype WHERE below.typtype = 'd')
    SELECT bool_or(below.typnotnull) AS required, max(below.oid) FILTER (WHERE below.typtype <> 'd') AS oid,
      max(below.typmod) FILTER (WHERE below.typtype <> 'd') AS typmod FROM below) AS base
  WHERE personal.value IS NOT NULL OR a.attname <> ALL (reclaim.own_columns(p_table))
  ORDER BY a.attnum
$$;
REVOKE ALL ON FUNCTION reclaim.column_facts FROM PUBLIC;
