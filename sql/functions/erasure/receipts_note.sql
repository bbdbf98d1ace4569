-- Writes down what the finished receipts of a participant say, as facts: of each of these customers the receipt as it is now.
-- p_by: reclaim, which erased the rows itself, a service that reported it, or an administrator who did so for the service. A name
-- of no participant is that of a table whose rows Reclaim looks after itself.
CREATE OR REPLACE FUNCTION reclaim.receipts_note(p_participant text, p_customers uuid[], p_by text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog SET enable_seqscan = off SET enable_mergejoin = off SET jit = off
  SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_p reclaim.cascade_participants;
  v_kind text;
  v_how text;
BEGIN
  SELECT * INTO v_p FROM reclaim.cascade_participants WHERE name = p_participant;
  IF FOUND THEN
    v_kind := v_p.kind;
    v_how := reclaim.cascade_how(v_p);
  ELSIF EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relkind IN ('r', 'p') AND format('%I.%I', n.nspname, c.relname) = p_participant) THEN
    v_kind := 'table';
    v_how := 'emptied';
  ELSE
    v_kind := 'unknown';
    v_how := 'unknown';
  END IF;
  INSERT INTO reclaim.receipt_facts (customer_id, participant, kind, status, rows, late_rows, first_tried_at, done_at, late_at, reason,
      how, reported_by)
    SELECT r.customer_id, r.participant, v_kind, r.status, r.rows, r.late_rows, r.first_tried_at, r.done_at, r.late_at,
      CASE WHEN r.status = 'kept' THEN r.error END, CASE WHEN r.status = 'done' THEN v_how END, p_by
    FROM (SELECT one AS id, p_participant AS participant FROM unnest(p_customers) AS one OFFSET 0) AS page
      JOIN reclaim.cascade_receipts r ON r.customer_id = page.id AND r.participant = page.participant
    WHERE r.status IN ('done', 'kept');
END
$$;
REVOKE ALL ON FUNCTION reclaim.receipts_note FROM PUBLIC;
