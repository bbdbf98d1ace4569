-- One step of looking again at what Reclaim itself keeps of customers whose erasure is complete; returns whose ledger it changed.
-- What was written into their own rows, or their logins and ownership rows (users), is cleared again, and the ledger says so;
-- accounts and keys that came late are ended.
CREATE OR REPLACE FUNCTION reclaim.rescan_own(p_step text, p_ids uuid[]) RETURNS uuid[]
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_now timestamptz := reclaim.now();
  v_found uuid[];
  v_names text[];
BEGIN
  IF p_step = 'accounts' THEN
    PERFORM reclaim.billing_follow_customers('{}', '{}', p_ids);
    RETURN '{}';
  ELSIF p_step = 'keys' THEN
    PERFORM reclaim.revoke_keys(p_ids);
    RETURN '{}';
  END IF;
  WITH late AS (
    SELECT l.customer_id, reclaim.table_home(p_step)::text AS name, l.rows FROM reclaim.clear_again(p_step, p_ids) l WHERE p_step <> 'users'
    UNION ALL
    SELECT u.customer_id, u.name, u.rows FROM reclaim.clear_users_again(p_ids) u WHERE p_step = 'users'
  ), noted AS (
    INSERT INTO reclaim.cascade_receipts AS r (customer_id, participant, status, rows, late_rows, late_at, done_at)
      SELECT l.customer_id, l.name, 'done', l.rows, l.rows, v_now, v_now FROM late l
      ON CONFLICT (customer_id, participant) DO UPDATE SET rows = r.rows + excluded.rows, late_rows = r.late_rows + excluded.late_rows,
        late_at = excluded.late_at, done_at = excluded.done_at
      RETURNING r.customer_id, r.participant)
  SELECT array_agg(customer_id), array_agg(participant) INTO v_found, v_names FROM noted;
  PERFORM reclaim.receipts_note(n.name, array_agg(n.id), 'reclaim') FROM unnest(v_found, v_names) AS n (id, name) GROUP BY n.name;
  RETURN ARRAY(SELECT DISTINCT unnest(v_found));
END
$$;
REVOKE ALL ON FUNCTION reclaim.rescan_own FROM PUBLIC;
