-- A customer under legal hold cannot be deleted as a row either, and no program empties the table: neither would leave a trace
-- of who was in it.
CREATE OR REPLACE FUNCTION reclaim.customer_keep() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    RAISE EXCEPTION 'the table of customers cannot be truncated' USING ERRCODE = 'object_not_in_prerequisite_state',
      HINT = 'DELETE erases each customer in every service, with a receipt.';
  ELSIF OLD.hold_at IS NOT NULL THEN
    RAISE EXCEPTION 'customer % is under legal hold and cannot be deleted', OLD.id
      USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'reclaim unhold ends the hold.';
  END IF;
  RETURN OLD;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_keep FROM PUBLIC;
