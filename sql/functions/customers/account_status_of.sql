-- What a user's account is: active, frozen or deleted; null when the user has no customer. Of one with several customers, owned or
-- as a member, the best state counts: a user who may work for one of them is let in, and what belongs to a single customer is
-- guarded by reclaim.customer_is_active. Where users are customers, the one that the user is counts too.
CREATE OR REPLACE FUNCTION reclaim.account_status_of(p_user uuid) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RETURN (SELECT CASE WHEN bool_or(c.status = 'active') THEN 'active' WHEN bool_or(c.status = 'frozen') THEN 'frozen'
      WHEN count(*) > 0 THEN 'deleted' END FROM reclaim.customers_of_user(p_user, NULL) c);
END
$$;
REVOKE ALL ON FUNCTION reclaim.account_status_of FROM PUBLIC;
