-- Disables, enables or removes a participant. What it has not erased is kept while it takes no part, and the ledger says so;
-- enabled again, it owes those receipts. p_reason: why it is disabled. Returns what is wrong; null when it is done.
CREATE OR REPLACE FUNCTION reclaim.cascade_switch(p_name text, p_verb text, p_reason text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_kept uuid[];
BEGIN
  PERFORM pg_advisory_xact_lock(1919247212, 4); -- see erasure_begin
  PERFORM FROM reclaim.cascade_participants WHERE name = p_name FOR UPDATE;
  IF NOT FOUND THEN
    RETURN format('there is no participant %s', p_name);
  END IF;
  IF p_verb = 'enable' THEN
    UPDATE reclaim.cascade_participants SET enabled = true, tries = 0, retry_at = '-infinity' WHERE name = p_name;
    PERFORM reclaim.cascade_resume(p_name, false);
    RETURN NULL;
  END IF;
  IF p_verb = 'remove' AND p_name LIKE 'reclaim.%' THEN
    RETURN format('%s is Reclaim''s own: it can be disabled, not removed', p_name);
  END IF;
  IF p_verb = 'disable' THEN
    UPDATE reclaim.cascade_participants SET enabled = false, disabled_reason = coalesce(p_reason, '') WHERE name = p_name;
  END IF;
  DELETE FROM reclaim.storage_checks WHERE participant = p_name;
  WITH kept AS (
    UPDATE reclaim.cascade_receipts SET status = 'kept',
        error = CASE p_verb WHEN 'disable' THEN concat_ws(': ', 'the participant is disabled', p_reason) ELSE 'the participant was removed before it erased' END
      WHERE participant = p_name AND status <> 'done' RETURNING customer_id)
  SELECT array_agg(customer_id) INTO v_kept FROM kept;
  IF v_kept IS NOT NULL THEN
    PERFORM reclaim.receipts_note(p_name, v_kept, 'reclaim');
    PERFORM reclaim.erasures_settle(v_kept);
  END IF;
  IF p_verb = 'remove' THEN
    DELETE FROM reclaim.cascade_participants WHERE name = p_name; -- last: the facts about its receipts say what it was
  END IF;
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_switch FROM PUBLIC;
