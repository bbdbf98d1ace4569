-- Who makes the changes of this transaction: what reclaim.change_by() said, if the session is Reclaim's own. Any role can set
-- these settings, so from others they count for nothing: the actor is sql, with the role's name. What follows later from what
-- another role did has that role's name (reclaim.users_leave).
CREATE OR REPLACE FUNCTION reclaim.change_actor(OUT kind text, OUT id uuid, OUT role text, OUT correlation_id uuid,
  OUT reason text, OUT action text, OUT clears boolean)
LANGUAGE plpgsql STABLE
AS $$
BEGIN
  kind := pg_catalog.current_setting('reclaim.actor', true);
  IF kind IN ('owner', 'key', 'admin', 'operator', 'system') AND reclaim.is_own_role() THEN
    id := nullif(pg_catalog.current_setting('reclaim.actor_id', true), '')::uuid;
    correlation_id := nullif(pg_catalog.current_setting('reclaim.correlation_id', true), '')::uuid;
    reason := coalesce(pg_catalog.current_setting('reclaim.reason', true), '');
    action := nullif(pg_catalog.current_setting('reclaim.action', true), '');
    clears := coalesce(nullif(pg_catalog.current_setting('reclaim.clears', true), ''), 'false')::boolean;
  ELSE
    kind := 'sql';
    role := session_user;
    IF nullif(pg_catalog.current_setting('reclaim.actor_role', true), '') IS NOT NULL AND reclaim.is_own_role() THEN
      role := pg_catalog.current_setting('reclaim.actor_role', true);
    END IF;
    reason := '';
    clears := false;
  END IF;
END
$$;
REVOKE ALL ON FUNCTION reclaim.change_actor FROM PUBLIC;
