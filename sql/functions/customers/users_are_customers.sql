-- Whether every user of auth.users is a customer of the same id, with or without a row (RECLAIM_CUSTOMERS=users).
CREATE OR REPLACE FUNCTION reclaim.users_are_customers() RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$ BEGIN RETURN (SELECT i.customers = 'users' FROM reclaim.installation i); END $$;
REVOKE ALL ON FUNCTION reclaim.users_are_customers FROM PUBLIC;
