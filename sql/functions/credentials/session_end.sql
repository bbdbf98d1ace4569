-- Has every gate forget what it cached of a session that was changed or deleted; at the next request it reads the row.
-- A session that expired an hour ago is cached nowhere.
CREATE OR REPLACE FUNCTION reclaim.session_end() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    INSERT INTO reclaim.gate_ended (kind, id) SELECT 'session', id FROM reclaim.sessions
      WHERE ended_at IS NULL AND expires_at > clock_timestamp() - interval '1 hour';
  ELSE
    INSERT INTO reclaim.gate_ended (kind, id) VALUES ('session', OLD.id);
  END IF;
  PERFORM pg_notify('reclaim_customers', '');
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION reclaim.session_end FROM PUBLIC;
