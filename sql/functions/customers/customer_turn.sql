-- Who changes a customer's state waits here, in the order of coming, and call set-ups behind it. At the row alone a
-- customer who calls without pause would keep its own freeze waiting: those who share a row pass who waits for it.
CREATE OR REPLACE FUNCTION reclaim.customer_turn(p_customer uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$ SELECT pg_catalog.uuid_hash_extended(p_customer, 0) $$;
REVOKE ALL ON FUNCTION reclaim.customer_turn FROM PUBLIC;
