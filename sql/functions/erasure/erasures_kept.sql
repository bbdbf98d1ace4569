-- What the ledgers of these customers say was left in place, a text each that begins with the customer's id: to be compared.
CREATE OR REPLACE FUNCTION reclaim.erasures_kept(p_customers uuid[]) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
AS $$
  SELECT k.customer_id || ' ' || jsonb_build_array(k.name, k.kind, k.reason, k.rows) FROM reclaim.erasure_kept k WHERE k.customer_id = ANY (p_customers)
$$;
REVOKE ALL ON FUNCTION reclaim.erasures_kept FROM PUBLIC;
