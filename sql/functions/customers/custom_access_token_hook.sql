-- Supabase Auth's hook for access tokens: adds account_status to the claims (docs/supabase-hooks.md). No sign-in may fail because
-- of it: without a status, after an error, or when a lock is not free soon, the claims stay as they are.
CREATE OR REPLACE FUNCTION reclaim.custom_access_token_hook(event jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '250ms'
AS $$
DECLARE
  v_status text;
BEGIN
  BEGIN
    v_status := reclaim.account_status_of((event ->> 'user_id')::uuid);
  EXCEPTION WHEN OTHERS THEN
    v_status := NULL;
  END;
  IF v_status IS NULL OR jsonb_typeof(event -> 'claims') IS DISTINCT FROM 'object' THEN
    RETURN event;
  END IF;
  RETURN jsonb_set(event, '{claims,account_status}', to_jsonb(v_status));
END
$$;
REVOKE ALL ON FUNCTION reclaim.custom_access_token_hook FROM PUBLIC;
