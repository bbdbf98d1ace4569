-- The customer of this id, for whatever reads one: its row, or the one that is implied.
CREATE OR REPLACE FUNCTION reclaim.customer_row(p_id uuid) RETURNS SETOF reclaim.customer_customers
LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1
AS $$
BEGIN
  RETURN QUERY SELECT c.* FROM reclaim.customer_customers c WHERE c.id = p_id;
  IF NOT FOUND THEN
    RETURN QUERY SELECT i.* FROM reclaim.implied_customer(p_id) i;
  END IF;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_row FROM PUBLIC;
