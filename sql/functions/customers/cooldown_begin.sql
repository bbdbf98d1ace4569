-- Begins the cool-down of addresses, after the deletion and in its transaction. p_users: whose login each one was of, or null. The
-- address of a user who has or is another customer is left out: that login stays.
CREATE OR REPLACE FUNCTION reclaim.cooldown_begin(p_hashes text[], p_users uuid[]) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_ends timestamptz := reclaim.now() + (SELECT i.cooldown FROM reclaim.installation i);
  v_count integer;
BEGIN
  INSERT INTO reclaim.address_cooldowns AS c (address_hash, ends_at)
    SELECT DISTINCT one.hash, v_ends FROM unnest(p_hashes, p_users) AS one (hash, user_id)
      WHERE v_ends IS NOT NULL AND NOT EXISTS (SELECT FROM reclaim.customer_customers o WHERE o.owner_user_id = one.user_id AND o.status <> 'deleted')
        AND NOT EXISTS (SELECT FROM reclaim.customer_members m WHERE m.user_id = one.user_id)
        AND NOT EXISTS (SELECT FROM reclaim.implied_customer(one.user_id)) ORDER BY 1
    ON CONFLICT (address_hash) DO UPDATE SET ends_at = greatest(c.ends_at, excluded.ends_at);
  GET DIAGNOSTICS v_count = ROW_COUNT;
  RETURN v_count;
END
$$;
REVOKE ALL ON FUNCTION reclaim.cooldown_begin FROM PUBLIC;
