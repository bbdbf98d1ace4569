-- Whether the session belongs to Reclaim: to a role that may write the outbox, and so could tell consumers anything anyway.
-- The role that logged in counts: inside a SECURITY DEFINER function current_user is the function's owner. Without SET, as
-- change_actor: both are asked for every row.
CREATE OR REPLACE FUNCTION reclaim.is_own_role() RETURNS boolean
LANGUAGE plpgsql STABLE
AS $$ BEGIN RETURN pg_catalog.has_table_privilege(session_user, 'reclaim.event_outbox'::pg_catalog.regclass, 'INSERT'); END $$;
REVOKE ALL ON FUNCTION reclaim.is_own_role FROM PUBLIC;
