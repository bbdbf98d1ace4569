-- Puts the triggers on auth.users by which a removed user is noticed at once, where users are customers. Runs as the owner of the
-- schema, which needs the privilege TRIGGER; on Supabase it does not own the table, and so cannot take them off again. Returns what to
-- do where it may not; null when they are there.
CREATE OR REPLACE FUNCTION reclaim.users_watch() RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s'
AS $$
BEGIN
  IF reclaim.users_watched() THEN
    RETURN NULL;
  END IF;
  CREATE OR REPLACE TRIGGER reclaim_user_deleted AFTER DELETE ON auth.users REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION reclaim.user_removed();
  CREATE OR REPLACE TRIGGER reclaim_user_marked_deleted AFTER UPDATE ON auth.users
    FOR EACH ROW WHEN (OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL) EXECUTE FUNCTION reclaim.user_removed();
  RETURN CASE WHEN NOT reclaim.users_watched() THEN 'ALTER TABLE auth.users ENABLE TRIGGER reclaim_user_deleted, '
    'ENABLE TRIGGER reclaim_user_marked_deleted' END;
EXCEPTION
  WHEN insufficient_privilege THEN
    RETURN format('GRANT USAGE ON SCHEMA auth TO %I; GRANT TRIGGER ON auth.users TO %1$I', current_user);
  WHEN lock_not_available THEN
    RETURN 'auth.users is locked: start again, or run reclaim doctor --repair';
END
$$;
REVOKE ALL ON FUNCTION reclaim.users_watch FROM PUBLIC;
