-- Before step 0011 is taken back: tables in public that its former text adopted. It did not note how they were, so what it changed
-- in columns that were there stays; the program prints pg_temp.reclaim_differences. What step 0022 adopted is given back already.
CREATE TEMP TABLE IF NOT EXISTS reclaim_differences (what text NOT NULL);
INSERT INTO pg_temp.reclaim_differences
  SELECT format('%s: the release that adopted it did not note what these columns were: %s', t.relation,
    string_agg(format('%I %s%s%s', a.attname, format_type(a.atttypid, a.atttypmod), coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), ''),
      CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END), ', ' ORDER BY a.attnum))
  FROM (SELECT DISTINCT relation FROM reclaim.adopted_columns WHERE relation LIKE 'public.%' AND column_name <> '') AS t
  JOIN pg_attribute a ON a.attrelid = to_regclass(t.relation) AND a.attnum > 0 AND NOT a.attisdropped
    AND a.attname = ANY ('{id,name,detail,email,phone_number,address,webhook_method,webhook_uri,billing_account_id,status,
      tm_deletion_scheduled,tm_create,tm_update,tm_delete,owner_user_id,version,frozen_api_at,frozen_calls_at,frozen_billing_at,
      hold_reason,hold_at,changed_xid,customer_id,hold_reasons,balance_micros}')
    AND NOT EXISTS (SELECT FROM reclaim.adopted_columns o WHERE o.relation = t.relation AND o.column_name = a.attname)
  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  GROUP BY t.relation;
