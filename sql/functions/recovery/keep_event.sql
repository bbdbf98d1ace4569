-- Trigger: a row of auth_cleanup_events is a fact and is not changed. Rows go when they are old (RECLAIM_AUDIT_RETENTION).
CREATE OR REPLACE FUNCTION reclaim.keep_event() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
BEGIN
  RAISE EXCEPTION 'rows of reclaim.auth_cleanup_events are never changed' USING ERRCODE = 'restrict_violation';
END
$$;
REVOKE ALL ON FUNCTION reclaim.keep_event FROM PUBLIC;
