-- Many customers changing at once: changes can be read page by page, and plans hold while tables grow by a million between
-- two statistics.

DO $$
DECLARE
  v_table regclass := reclaim.table_home('customer_customers');
BEGIN
  EXECUTE format('DROP INDEX %s', (SELECT i.indexrelid::regclass FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = v_table AND c.relname = 'customer_by_change'));
  EXECUTE format('CREATE INDEX customer_by_change ON %s (changed_xid, id)', v_table);
END
$$;
DROP INDEX reclaim.access_keys_revoked_idx;
CREATE INDEX access_keys_revoked_idx ON reclaim.access_keys (changed_xid, id) WHERE revoked_at IS NOT NULL;

-- Lists of customers are as long as they are, what they are looked up in has an index, and compiling takes longer than doing.
ALTER FUNCTION reclaim.cascade_page(text, integer) SET enable_seqscan = off;
ALTER FUNCTION reclaim.cascade_page(text, integer) SET plan_cache_mode = force_custom_plan;
ALTER FUNCTION reclaim.cascade_page(text, integer) SET jit = off;
ALTER FUNCTION reclaim.delete_customers(uuid[], text[], text, text, uuid, uuid) SET enable_seqscan = off;
ALTER FUNCTION reclaim.delete_customers(uuid[], text[], text, text, uuid, uuid) SET jit = off;
