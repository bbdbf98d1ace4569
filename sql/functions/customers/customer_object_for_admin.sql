-- The customer object with what only administrators see: why it was frozen, its legal hold, and how often
-- it was frozen lately.
CREATE OR REPLACE FUNCTION reclaim.customer_object_for_admin(c reclaim.customer_customers) RETURNS json
LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
BEGIN
  RETURN pg_catalog.format('%s,"freezes_in_30_days":%s,"freeze_reason":%s,"legal_hold":%s}', pg_catalog."left"(reclaim.customer_object(c)::text, -1),
    (reclaim.customer_freezes(c.id)).count,
    coalesce(pg_catalog.to_json(reclaim.shown_text(c.freeze_reason))::text, 'null'), CASE WHEN c.hold_at IS NULL THEN 'null'
      ELSE pg_catalog.format('{"reason":%s,"since":%s}',
        coalesce(pg_catalog.to_json(reclaim.shown_text(c.hold_reason))::text, 'null'), pg_catalog.to_json(reclaim.rfc3339(c.hold_at))::text) END)::json;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_object_for_admin FROM PUBLIC;
