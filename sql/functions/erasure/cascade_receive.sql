-- Stores a remote service's receipt. p_by: as in reclaim.receipts_note. Repeats change nothing. missing: no such erasure, or no such remote participant in it.
CREATE OR REPLACE FUNCTION reclaim.cascade_receive(p_customer uuid, p_participant text, p_done boolean, p_rows bigint, p_error text,
  p_by text DEFAULT 'service') RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_now timestamptz := reclaim.now();
  v_status text;
BEGIN
  SELECT r.status INTO v_status FROM reclaim.cascade_receipts r JOIN reclaim.cascade_participants p ON p.name = r.participant
    WHERE r.customer_id = p_customer AND r.participant = p_participant AND p.kind = 'remote' FOR UPDATE OF r;
  IF v_status IS NULL THEN
    RETURN 'missing';
  END IF;
  IF v_status IN ('done', 'kept') THEN
    RETURN 'unchanged';
  END IF;
  UPDATE reclaim.cascade_receipts SET status = CASE WHEN p_done THEN 'done' ELSE 'failed' END,
      rows = CASE WHEN p_done THEN greatest(coalesce(p_rows, 0), 0) ELSE rows END, tries = tries + 1,
      first_tried_at = coalesce(first_tried_at, v_now), last_tried_at = v_now,
      done_at = CASE WHEN p_done THEN v_now END, error = CASE WHEN NOT p_done THEN left(coalesce(p_error, 'failed'), 200) END
    WHERE customer_id = p_customer AND participant = p_participant;
  IF p_done THEN
    PERFORM reclaim.receipts_note(p_participant, ARRAY[p_customer], p_by);
  END IF;
  PERFORM reclaim.erasures_settle(ARRAY[p_customer]);
  RETURN CASE WHEN p_done THEN 'done' ELSE 'failed' END;
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_receive FROM PUBLIC;
