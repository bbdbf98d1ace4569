-- The ids of customers in their order, behind p_after: of one status, due for deletion within a week ("due"), with an erasure that
-- is not complete ("erasing"), under legal hold, or of this id or a name or address
-- that begins so, in either case; deleted ones have neither. Each may be null (p_held: false) for all. Where users are customers, one
-- without a row is found by its id or its whole address only.
--
-- Planned anew for each call: an index by the beginning of a text serves only when the planner knows the text.
CREATE OR REPLACE FUNCTION reclaim.customers_find(p_status text, p_held boolean, p_text text, p_after uuid, p_limit bigint)
  RETURNS SETOF uuid
LANGUAGE plpgsql STABLE ROWS 50 SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan SET jit = off
AS $$
DECLARE
  -- Characters that mean something to LIKE are escaped.
  v_begins text := regexp_replace(lower("left"(p_text, 100)), '([\\%_])', '\\\1', 'g') || '%';
  v_id uuid := CASE WHEN p_text ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN p_text::uuid END;
  v_week timestamptz := reclaim.now() + interval '168 hours';
  v_implied uuid[] := '{}';
BEGIN
  IF p_text IS NOT NULL AND coalesce(p_status, 'active') = 'active' AND NOT p_held AND reclaim.users_are_customers() THEN
    v_implied := ARRAY(SELECT i.id FROM (SELECT v_id AS id UNION ALL SELECT u.id FROM auth.users u
        WHERE v_id IS NULL AND u.email = lower(p_text) AND u.is_sso_user = false) AS one, reclaim.implied_customer(one.id) AS i
      WHERE p_after IS NULL OR i.id > p_after);
  END IF;
  RETURN QUERY (SELECT c.id FROM reclaim.customer_customers c
    WHERE CASE p_status WHEN 'due' THEN c.status = 'frozen' AND c.hold_at IS NULL AND c.deletion_effective_at < v_week
        WHEN 'erasing' THEN c.id IN (SELECT e.customer_id FROM reclaim.erasures e WHERE e.completed_at IS NULL)
        ELSE p_status IS NULL OR c.status = p_status END AND (NOT p_held OR c.hold_at IS NOT NULL)
      AND (p_after IS NULL OR c.id > p_after)
      AND (p_text IS NULL OR c.id = v_id OR v_id IS NULL AND c.status <> 'deleted' AND (lower("left"(c.name, 100)) LIKE v_begins
        OR lower("left"(c.email, 100)) LIKE v_begins))
    ORDER BY c.id LIMIT p_limit)
    UNION ALL SELECT unnest(v_implied) ORDER BY 1 LIMIT p_limit;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customers_find FROM PUBLIC;
