ALTER FUNCTION reclaim.delete_customers(uuid[], text[], text, text, uuid, uuid) RESET jit;
ALTER FUNCTION reclaim.delete_customers(uuid[], text[], text, text, uuid, uuid) RESET enable_seqscan;
ALTER FUNCTION reclaim.cascade_page(text, integer) RESET jit;
ALTER FUNCTION reclaim.cascade_page(text, integer) RESET plan_cache_mode;
ALTER FUNCTION reclaim.cascade_page(text, integer) RESET enable_seqscan;

DROP INDEX reclaim.access_keys_revoked_idx;
CREATE INDEX access_keys_revoked_idx ON reclaim.access_keys (changed_xid) WHERE revoked_at IS NOT NULL;
DO $$
DECLARE
  v_table regclass := reclaim.table_home('customer_customers');
BEGIN
  EXECUTE format('DROP INDEX %s', (SELECT i.indexrelid::regclass FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = v_table AND c.relname = 'customer_by_change'));
  EXECUTE format('CREATE INDEX customer_by_change ON %s (changed_xid)', v_table);
END
$$;
