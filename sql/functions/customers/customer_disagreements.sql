-- Customers whose layers disagree with their row: changed while the triggers were off (disabled, session_replication_role,
-- logical replication), or beside them. At most p_limit.
CREATE OR REPLACE FUNCTION reclaim.customer_disagreements(p_limit integer) RETURNS TABLE (customer_id uuid, what text)
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT one.customer_id, min(one.what) FROM (
    SELECT c.id AS customer_id, format('its row says %s, the layers were told %s', c.status, coalesce(t.status, 'active')) AS what
      FROM reclaim.customer_customers c LEFT JOIN reclaim.customer_told t ON t.customer_id = c.id
      WHERE c.status <> coalesce(t.status, 'active')
    UNION ALL
    SELECT t.customer_id, format('its row is gone, the layers were told %s', t.status) FROM reclaim.customer_told t
      WHERE t.status <> 'deleted' AND NOT EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.id = t.customer_id)
    UNION ALL
    SELECT c.id, format('it is %s, its billing account %s is %s', c.status, a.id, a.status)
      FROM reclaim.customer_customers c JOIN reclaim.billing_accounts a ON a.customer_id = c.id
      WHERE a.status <> 'deleted' AND (c.status = 'deleted' OR (c.status = 'frozen') <> ('account_frozen' = ANY (a.hold_reasons)))
    UNION ALL
    SELECT k.customer_id, 'it is deleted or gone, its API keys are not revoked' FROM reclaim.access_keys k
      WHERE k.revoked_at IS NULL AND k.customer_id IS NOT NULL AND NOT EXISTS (SELECT FROM reclaim.customer_row(k.customer_id) c
        WHERE c.status <> 'deleted')
    UNION ALL
    SELECT c.id, 'it is frozen without the date of its deletion' FROM reclaim.customer_customers c
      WHERE c.status = 'frozen' AND c.deletion_effective_at IS NULL
    UNION ALL
    SELECT n.customer_id, 'the consequences of a change were not written' FROM reclaim.customer_pending n
      WHERE n.xid < pg_snapshot_xmin(pg_current_snapshot())
  ) AS one GROUP BY one.customer_id ORDER BY one.customer_id LIMIT p_limit
$$;
REVOKE ALL ON FUNCTION reclaim.customer_disagreements FROM PUBLIC;
