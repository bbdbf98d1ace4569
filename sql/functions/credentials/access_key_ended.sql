-- Makes every gate drop what it has cached of a key whose row was changed or deleted. Runs as its owner: a role that may
-- write keys needs no right to reclaim.gate_ended.
CREATE OR REPLACE FUNCTION reclaim.access_key_ended() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    INSERT INTO reclaim.gate_ended (kind, id) SELECT 'key', k.id FROM reclaim.access_keys k;
  ELSE
    INSERT INTO reclaim.gate_ended (kind, id) VALUES ('key', OLD.id);
  END IF;
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION reclaim.access_key_ended FROM PUBLIC;
