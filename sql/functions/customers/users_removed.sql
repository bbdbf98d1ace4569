-- Users were deleted from auth.users, or marked as deleted there, by whatever program; this transaction did it. Every gate forgets
-- them, and the work that is left deletes what they are as customers (reclaim.users_leave). p_own: by the clean-up, which deletes
-- registrations that never became anything: of those only such as have calls or accounts leave something to erase.
--
-- Written fifty users an item, by the transaction that removes them: it must not fail because of what follows.
CREATE OR REPLACE FUNCTION reclaim.users_removed(p_users uuid[], p_own boolean) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_leaving uuid[] := p_users;
BEGIN
  IF NOT reclaim.users_are_customers() OR p_users = '{}' THEN
    RETURN;
  END IF;
  INSERT INTO reclaim.gate_ended (kind, id)
    SELECT 'user', one FROM unnest(p_users) AS one
    UNION SELECT 'customer', k.customer_id FROM reclaim.access_keys k WHERE k.customer_id = ANY (p_users) AND k.revoked_at IS NULL;
  IF p_own THEN
    v_leaving := ARRAY(SELECT one FROM unnest(p_users) AS one
      WHERE EXISTS (SELECT FROM reclaim.billing_accounts a WHERE a.customer_id = one)
        OR EXISTS (SELECT FROM reclaim.call_calls c WHERE c.customer_id = one AND c.status <> 'hangup'));
  END IF;
  INSERT INTO reclaim.work_items (kind, payload)
    SELECT 'user_removed', jsonb_build_object('user_ids', to_jsonb(v_leaving[part : part + 49]), 'role', session_user)
    FROM generate_series(1, cardinality(v_leaving), 50) AS part;
  PERFORM pg_notify('reclaim_work', '');
END
$$;
REVOKE ALL ON FUNCTION reclaim.users_removed FROM PUBLIC;
