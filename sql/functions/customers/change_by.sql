-- Says who makes the changes of this transaction, for reclaim.change_actor(). p_action: the audit's word for it, where it is
-- not the change's own. p_clears: personal data is cleared in the same transaction.
CREATE OR REPLACE FUNCTION reclaim.change_by(p_actor text, p_actor_id uuid, p_correlation_id uuid, p_reason text DEFAULT NULL,
  p_action text DEFAULT NULL, p_clears boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  PERFORM pg_catalog.set_config('reclaim.actor', p_actor, true),
    pg_catalog.set_config('reclaim.actor_id', coalesce(p_actor_id::text, ''), true),
    pg_catalog.set_config('reclaim.correlation_id', coalesce(p_correlation_id::text, ''), true),
    pg_catalog.set_config('reclaim.reason', coalesce(p_reason, ''), true),
    pg_catalog.set_config('reclaim.action', coalesce(p_action, ''), true),
    pg_catalog.set_config('reclaim.clears', p_clears::text, true);
END
$$;
REVOKE ALL ON FUNCTION reclaim.change_by FROM PUBLIC;
