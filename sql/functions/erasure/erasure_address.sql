-- Stores of these customers the salted hash of the address and the hash of the link's secret, for the certificate, and the keyed hash
-- of the address, for the journal; p_sealed as in reclaim.clear_customers. The first ones count: what is repeated after a crash has
-- only the alias left, and another secret than the mail.
CREATE OR REPLACE FUNCTION reclaim.erasure_address(p_customers uuid[], p_sealed text[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
  UPDATE reclaim.erasures e SET address_hash = nullif(split_part(m.sealed, ':', 2), ''), link_hash = nullif(split_part(m.sealed, ':', 3), ''),
      keyed_address = nullif(split_part(m.sealed, ':', 4), '')
    FROM unnest(p_customers, p_sealed) AS m (id, sealed) WHERE e.customer_id = m.id AND m.sealed LIKE '%:%'
      AND e.address_hash IS NULL AND e.link_hash IS NULL AND e.keyed_address IS NULL AND e.certificate_id IS NULL;
END
$$;
REVOKE ALL ON FUNCTION reclaim.erasure_address FROM PUBLIC;
