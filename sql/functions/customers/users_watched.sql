-- Whether a user who is removed from auth.users is noticed by the transaction that does it: the triggers of reclaim.users_watch are
-- there, and are not disabled. True where users are not customers.
CREATE OR REPLACE FUNCTION reclaim.users_watched() RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
BEGIN
  RETURN NOT reclaim.users_are_customers() OR (SELECT pg_catalog.count(*) = 2 FROM pg_catalog.pg_trigger t
    WHERE t.tgrelid = pg_catalog.to_regclass('auth.users') AND t.tgname IN ('reclaim_user_deleted', 'reclaim_user_marked_deleted')
      AND t.tgenabled IN ('O', 'A'));
END
$$;
REVOKE ALL ON FUNCTION reclaim.users_watched FROM PUBLIC;
