-- Takes what is personal out of the events of deleted customers that are still kept.
CREATE OR REPLACE FUNCTION reclaim.anonymise_events(p_customers uuid[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  UPDATE reclaim.event_outbox SET payload = payload || reclaim.anonymised(customer_id)
    WHERE customer_id = ANY (p_customers);
END
$$;
REVOKE ALL ON FUNCTION reclaim.anonymise_events FROM PUBLIC;
