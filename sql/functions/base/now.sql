-- The installation's time, for rules about customers, codes, subscriptions and reminders. Leases, limits, sessions, tokens,
-- work, and tm_create, tm_update and tm_end, which no rule goes by, use the real time, clock_timestamp(). The shift is a row of a table and never a setting of the session, which
-- any role could set.
--
-- In conditions write (SELECT reclaim.now()): evaluated once, and indexes serve. plpgsql keeps its plan for the session; as
-- an SQL function this could not be inlined, and would be planned again in every statement.
CREATE OR REPLACE FUNCTION reclaim.now() RETURNS timestamptz
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog
AS $$ BEGIN RETURN clock_timestamp() + (SELECT clock_shift FROM reclaim.installation); END $$;
REVOKE ALL ON FUNCTION reclaim.now FROM PUBLIC;
