-- The object of a deleted customer, without anything personal. Of a row that is gone p_object has the rest.
CREATE OR REPLACE FUNCTION reclaim.customer_object_anonymised(p_id uuid, p_object jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE
AS $$
BEGIN
  RETURN pg_catalog.jsonb_build_object('id', p_id, 'status', 'deleted', 'tm_update', reclaim.rfc3339(pg_catalog.clock_timestamp()),
      'tm_delete', reclaim.rfc3339(reclaim.now())) OPERATOR(pg_catalog.||) p_object
    OPERATOR(pg_catalog.||) pg_catalog.jsonb_build_object('name', 'deleted_user_' || p_id,
      'email', 'deleted_' || p_id || '@removed.invalid', 'detail', '', 'phone_number', '', 'address', '',
      'webhook_method', '', 'webhook_uri', '');
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_object_anonymised FROM PUBLIC;
