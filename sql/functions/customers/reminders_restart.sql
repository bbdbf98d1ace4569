-- The deletion of these customers has a new date, of which a mail tells them: reminders are sent for it, whether they were sent
-- for the old one or not. A row with before_ms 0 says when they were told.
CREATE OR REPLACE FUNCTION reclaim.reminders_restart(p_customers uuid[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$
BEGIN
  DELETE FROM reclaim.reminders WHERE customer_id = ANY (p_customers);
  INSERT INTO reclaim.reminders (customer_id, scheduled, before_ms, created_at)
    SELECT c.id, c.tm_deletion_scheduled, 0, reclaim.now() FROM reclaim.customer_customers c
    WHERE c.id = ANY (p_customers) AND c.status = 'frozen';
END
$$;
REVOKE ALL ON FUNCTION reclaim.reminders_restart FROM PUBLIC;
