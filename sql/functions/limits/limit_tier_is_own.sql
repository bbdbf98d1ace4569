-- Whether a tier (the key up to its first colon) is one of Reclaim's own, which src/limits/tiers.c names.
CREATE OR REPLACE FUNCTION reclaim.limit_tier_is_own(p_tier text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT p_tier = ANY ('{global,global-validate,ip,ip-site,email,email-validate,probe,probe-site,login,login-address,'
    'login-ip,login-ip-site,code,code-ip,code-ip-site}'::text[])
$$;
REVOKE ALL ON FUNCTION reclaim.limit_tier_is_own FROM PUBLIC;
