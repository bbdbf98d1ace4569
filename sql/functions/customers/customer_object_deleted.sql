-- The customer object of a deleted customer: nothing personal is in it. Without SET, so that it is inlined.
CREATE OR REPLACE FUNCTION reclaim.customer_object_deleted(p_id uuid, p_account uuid, p_scheduled timestamptz, p_create timestamptz,
  p_update timestamptz, p_delete timestamptz) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT pg_catalog.jsonb_build_object('id', p_id, 'name', 'deleted_user_' || p_id, 'email', 'deleted_' || p_id || '@removed.invalid',
    'detail', '', 'phone_number', '', 'address', '', 'webhook_method', '', 'webhook_uri', '', 'billing_account_id', p_account,
    'status', 'deleted', 'tm_deletion_scheduled', reclaim.rfc3339(p_scheduled), 'tm_create', reclaim.rfc3339(p_create),
    'tm_update', reclaim.rfc3339(p_update), 'tm_delete', reclaim.rfc3339(p_delete))
$$;
REVOKE ALL ON FUNCTION reclaim.customer_object_deleted FROM PUBLIC;
