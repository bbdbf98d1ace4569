-- A page of a customer's members, {"items":[…],"next":…}, behind the user p_after; null when there is no such customer.
CREATE OR REPLACE FUNCTION reclaim.members_page(p_customer uuid, p_after uuid, p_limit bigint) RETURNS json
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_users uuid[];
BEGIN
  IF NOT EXISTS (SELECT FROM reclaim.customer_row(p_customer)) THEN
    RETURN NULL;
  END IF;
  -- One more than the limit shows whether there is a next page.
  v_users := ARRAY(SELECT user_id FROM reclaim.customer_members
    WHERE customer_id = p_customer AND (p_after IS NULL OR user_id > p_after) ORDER BY user_id LIMIT p_limit + 1);
  RETURN json_build_object(
    'items', (SELECT coalesce(json_agg(reclaim.member_object(p_customer, one) ORDER BY one), '[]')
      FROM unnest(v_users[1:p_limit]) AS one),
    'next', CASE WHEN cardinality(v_users) > p_limit THEN v_users[p_limit] END);
END
$$;
REVOKE ALL ON FUNCTION reclaim.members_page FROM PUBLIC;
