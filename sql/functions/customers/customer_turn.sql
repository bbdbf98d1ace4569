-- The second number of the advisory lock that orders a customer's changes of state and its call set-ups: changes take it
-- exclusively, set-ups in share mode, before the row. Share locks on the row alone would overtake a waiting change, and a
-- customer who calls without pause would delay its own freeze. Two customers with the same hash wait for each other.
CREATE OR REPLACE FUNCTION reclaim.customer_turn(p_customer uuid) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$ SELECT pg_catalog.uuid_hash(p_customer) $$;
REVOKE ALL ON FUNCTION reclaim.customer_turn FROM PUBLIC;
