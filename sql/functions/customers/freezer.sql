-- frozen_by for an actor of reclaim.change_actor(): who froze may thaw.
CREATE OR REPLACE FUNCTION reclaim.freezer(p_actor text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT CASE WHEN p_actor IN ('owner', 'key') THEN 'owner' WHEN p_actor IN ('admin', 'operator', 'system') THEN 'admin'
    ELSE 'sql' END
$$;
REVOKE ALL ON FUNCTION reclaim.freezer FROM PUBLIC;
