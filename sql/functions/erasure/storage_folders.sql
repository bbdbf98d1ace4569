-- The bucket of a participant, and the folders that the customer's users have in it, one a row, null for none. No row: nothing is
-- to be erased there (any more). What is looked at again has a receipt that is done.
CREATE OR REPLACE FUNCTION reclaim.storage_folders(p_customer uuid, p_participant text) RETURNS TABLE (bucket text, folder text)
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT p.bucket, replace(p.prefix, '{user}', users.id::text) FROM reclaim.cascade_participants p
    JOIN reclaim.cascade_receipts r ON r.participant = p.name AND r.customer_id = p_customer AND r.status <> 'kept'
    LEFT JOIN LATERAL unnest((reclaim.cascade_keys(p, ARRAY[p_customer])).keys) AS users (id) ON true
    WHERE p.name = p_participant AND p.kind = 'storage' AND p.enabled ORDER BY 2
$$;
REVOKE ALL ON FUNCTION reclaim.storage_folders FROM PUBLIC;
