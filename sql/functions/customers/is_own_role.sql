-- Whether the session belongs to Reclaim: to a role that may write the outbox, and so could tell consumers anything anyway.
-- The role that logged in counts: inside a SECURITY DEFINER function current_user is the function's owner.
CREATE OR REPLACE FUNCTION reclaim.is_own_role() RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog
AS $$ BEGIN RETURN has_table_privilege(session_user, 'reclaim.event_outbox', 'INSERT'); END $$;
REVOKE ALL ON FUNCTION reclaim.is_own_role FROM PUBLIC;
