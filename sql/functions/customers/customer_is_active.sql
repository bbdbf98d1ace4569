-- For row-level security policies. Runs as its owner, so that the calling role needs no right to the table.
CREATE OR REPLACE FUNCTION reclaim.customer_is_active(p_id uuid) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE SET search_path = pg_catalog
AS $$ SELECT EXISTS (SELECT FROM reclaim.customer_customers WHERE id = p_id AND status = 'active') $$;
REVOKE ALL ON FUNCTION reclaim.customer_is_active FROM PUBLIC;
