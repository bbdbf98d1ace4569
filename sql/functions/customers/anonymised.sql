-- What takes the place of personal data in the object of a deleted customer. Without SET, so that it is inlined.
CREATE OR REPLACE FUNCTION reclaim.anonymised(p_id uuid) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT pg_catalog.jsonb_build_object('name', 'deleted_user_' || p_id, 'email', 'deleted_' || p_id || '@removed.invalid',
    'detail', '', 'phone_number', '', 'address', '', 'webhook_method', '', 'webhook_uri', '')
$$;
REVOKE ALL ON FUNCTION reclaim.anonymised FROM PUBLIC;
