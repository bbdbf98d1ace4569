-- The installation's time, for rules about customers, codes, subscriptions, reminders and erasures. Leases, limits, sessions,
-- tokens and work use the real time, clock_timestamp(), and so do tm_create, tm_update and tm_end, which no rule depends on. The
-- shift is a row of a table, not a setting of the session, which any role could set.
--
-- In conditions write (SELECT reclaim.now()): it is evaluated once, and indexes can be used. plpgsql keeps its plan for the
-- session; an SQL function could not be inlined here and would be planned again in every statement.
CREATE OR REPLACE FUNCTION reclaim.now() RETURNS timestamptz
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog SET jit = off
AS $$ BEGIN RETURN clock_timestamp() + (SELECT clock_shift FROM reclaim.installation); END $$;
REVOKE ALL ON FUNCTION reclaim.now FROM PUBLIC;
