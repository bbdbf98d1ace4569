-- Clears the numbers of a call that is marked deleted.
CREATE OR REPLACE FUNCTION reclaim.call_forget() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
BEGIN
  IF NEW.tm_delete IS NOT NULL THEN
    NEW.source := '';
    NEW.destination := '';
  END IF;
  RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION reclaim.call_forget FROM PUBLIC;
