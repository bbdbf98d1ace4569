-- Deletes the rows that no limit needs among p_blocks blocks of the table, from block p_from on: last admissions older than
-- twice their tier's window, two hours where no window is known, or more than a day ahead. Rows that another transaction has
-- locked stay for the next time. next is the block to go on from, NULL after the last.
--
-- By blocks, so that all pages together read the table once and each is short, however many rows there are.
CREATE OR REPLACE FUNCTION reclaim.limit_prune_page(p_from bigint, p_blocks integer, OUT deleted integer, OUT next bigint)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog SET jit = off
AS $$
DECLARE
  v_now timestamptz := reclaim.limit_clock();
BEGIN
  DELETE FROM reclaim.rate_limits r
  WHERE r.ctid = ANY (ARRAY(
    SELECT o.ctid
    FROM reclaim.rate_limits o LEFT JOIN reclaim.rate_limit_tiers t ON t.tier = split_part(o.key, ':', 1)
    WHERE o.ctid >= format('(%s,0)', p_from)::tid AND o.ctid < format('(%s,0)', p_from + p_blocks)::tid
      AND (coalesce(o.last_at, o.bucket_time) <= v_now - make_interval(secs => 2.0 * coalesce(t.window_seconds, 3600))
        OR coalesce(o.last_at, o.bucket_time) > v_now + interval '1 day')
    FOR UPDATE OF o SKIP LOCKED));
  GET DIAGNOSTICS deleted = ROW_COUNT;
  IF (p_from + p_blocks) * current_setting('block_size')::bigint < pg_relation_size('reclaim.rate_limits') THEN
    next := p_from + p_blocks;
  END IF;
END
$$;
REVOKE ALL ON FUNCTION reclaim.limit_prune_page FROM PUBLIC;
