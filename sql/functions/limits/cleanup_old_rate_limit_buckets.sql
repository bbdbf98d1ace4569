-- Deletes rows that no limit needs (limit_prune_page), in one transaction, for other programs; Reclaim's leader commits after
-- each page. Returns how many.
CREATE OR REPLACE FUNCTION reclaim.cleanup_old_rate_limit_buckets() RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_deleted integer := 0;
  v_next bigint := 0;
  v_page record;
BEGIN
  WHILE v_next IS NOT NULL LOOP
    SELECT p.deleted, p.next INTO v_page FROM reclaim.limit_prune_page(v_next, 256) p;
    v_deleted := v_deleted + v_page.deleted;
    v_next := v_page.next;
  END LOOP;
  RAISE NOTICE 'Cleaned up % old rate limit buckets', v_deleted;
  RETURN v_deleted;
END
$$;
REVOKE ALL ON FUNCTION reclaim.cleanup_old_rate_limit_buckets FROM PUBLIC;
