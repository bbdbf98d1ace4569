-- Locks the next customers of one part of an expiry pass, behind p_after and p_after_id, and returns them with the addresses of
-- their last mails. Waits for transactions that change one of the customers, then checks the row as it is by then: one that has
-- recovered, was frozen again or is on hold is left out, and none can change before the commit. What became due after p_until is
-- left to the next pass: the brake has not counted it.
--
-- Reads the index in its order and ends with the batch, whatever the statistics say: with a sort each batch would read all
-- customers that are left.
CREATE OR REPLACE FUNCTION reclaim.expiry_lock(p_after timestamptz, p_after_id uuid, p_limit bigint, p_until timestamptz,
  p_part bigint, p_parts bigint) RETURNS TABLE (id uuid, after text, email text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_sort = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
  RETURN QUERY
    SELECT due.id, due.deletion_effective_at::text, left(coalesce(CASE WHEN due.id = due.owner_user_id THEN u.email END, nullif(due.email, ''), u.email, '')::text, 1000)
    FROM (SELECT c.id, c.deletion_effective_at, c.email, c.owner_user_id FROM reclaim.customer_customers c
      WHERE c.status = 'frozen' AND c.hold_at IS NULL AND (c.deletion_effective_at, c.id) > (p_after, p_after_id)
        AND c.deletion_effective_at <= least(p_until, (SELECT reclaim.now()))
        AND abs(uuid_hash(coalesce(c.owner_user_id, c.id))::bigint) % p_parts = p_part
      ORDER BY c.deletion_effective_at, c.id LIMIT p_limit FOR UPDATE OF c) AS due
    LEFT JOIN auth.users u ON u.id = due.owner_user_id;
END
$$;
REVOKE ALL ON FUNCTION reclaim.expiry_lock FROM PUBLIC;
