-- Status and tm_delete go together, whichever of them is written. Runs as its owner, as billing_settle_holds does.
CREATE OR REPLACE FUNCTION reclaim.billing_settle() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  NEW.status := coalesce(nullif(NEW.status::text, ''), 'active');
  IF NEW.tm_delete IS NOT NULL AND reclaim.is_sentinel(NEW.tm_delete) THEN
    NEW.tm_delete := NULL;
  END IF;
  IF NEW.tm_delete IS NOT NULL THEN
    NEW.status := 'deleted';
  ELSIF NEW.status = 'deleted' THEN
    NEW.tm_delete := reclaim.now();
  END IF;
  IF TG_OP = 'UPDATE' AND NEW.status IS DISTINCT FROM OLD.status THEN
    NEW.tm_update := clock_timestamp();
  END IF;
  RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION reclaim.billing_settle FROM PUBLIC;
