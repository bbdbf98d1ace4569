-- For row-level security policies: whether the user of the request has an account that is active. A user without a customer has none.
CREATE OR REPLACE FUNCTION reclaim.account_is_active() RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ BEGIN RETURN coalesce(reclaim.account_status() = 'active', false); END $$;
REVOKE ALL ON FUNCTION reclaim.account_is_active FROM PUBLIC;
