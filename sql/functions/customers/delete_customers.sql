-- Deletes these customers, whose rows the caller has locked and checked, in one statement: it clears the rows and changes their
-- state, and the triggers write what follows. p_sealed: as in clear_customers.
CREATE OR REPLACE FUNCTION reclaim.delete_customers(p_ids uuid[], p_sealed text[], p_action text, p_actor text, p_actor_id uuid,
  p_correlation_id uuid) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_count integer;
BEGIN
  IF NOT reclaim.sees_all_rows('reclaim.customer_customers', 'UPDATE') THEN
    RAISE insufficient_privilege USING MESSAGE = 'row-level security hides customers from this role';
  END IF;
  PERFORM reclaim.change_by(p_actor, p_actor_id, p_correlation_id, NULL, p_action, true);
  v_count := reclaim.clear_customers(p_ids, p_sealed, NULL);
  IF v_count <> cardinality(p_ids) THEN
    RAISE insufficient_privilege USING MESSAGE = 'a trigger or rule keeps customers from being changed';
  END IF;
  -- Rows that were deleted before, without an erasure: adopted ones.
  PERFORM reclaim.customer_repair(one) FROM unnest(p_ids) AS one
    WHERE NOT EXISTS (SELECT FROM reclaim.erasures e WHERE e.customer_id = one);
  PERFORM set_config('reclaim.clears', 'false', true);
  RETURN v_count;
END
$$;
REVOKE ALL ON FUNCTION reclaim.delete_customers FROM PUBLIC;
