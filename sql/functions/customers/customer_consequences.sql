-- All that follows from changes of customers' state, at most one change of each, set by set: billing, credentials, the erasure,
-- the event, the audit row, and the work that is left: mails, calls to end, personal data to clear. Sorted by id, so that two of
-- these transactions lock in the same order; the customers' rows are locked.
CREATE OR REPLACE FUNCTION reclaim.customer_consequences(p_notes reclaim.customer_pending[]) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_frozen uuid[] := ARRAY(SELECT n.customer_id FROM unnest(p_notes) n WHERE n.change = 'freeze' ORDER BY 1);
  v_active uuid[] := ARRAY(SELECT n.customer_id FROM unnest(p_notes) n WHERE n.change = 'recover' ORDER BY 1);
  v_gone uuid[] := ARRAY(SELECT n.customer_id FROM unnest(p_notes) n WHERE n.change = 'delete' ORDER BY 1);
  v_calling uuid[] := ARRAY(SELECT id FROM unnest(v_gone) AS id WHERE reclaim.may_have_calls(id));
  v_mails boolean := (SELECT mails FROM reclaim.installation);
BEGIN
  PERFORM reclaim.billing_follow_customers(v_frozen, v_active, v_gone);
  IF v_gone <> '{}' THEN
    PERFORM reclaim.revoke_keys(v_gone);
    PERFORM reclaim.anonymise_events(v_gone);
    UPDATE reclaim.customer_log SET detail = '' WHERE customer_id = ANY (v_gone) AND detail <> '';
    DELETE FROM reclaim.reminders WHERE customer_id = ANY (v_gone);
    PERFORM reclaim.erasure_begin(v_gone, ARRAY(SELECT n.customer_id FROM unnest(p_notes) n WHERE n.cleared));
  END IF;

  INSERT INTO reclaim.event_outbox (sequence, type, customer_id, payload)
    SELECT n.version, 'customer_' || CASE n.change WHEN 'freeze' THEN 'frozen' WHEN 'recover' THEN 'recovered' ELSE 'deleted' END,
      n.customer_id, CASE WHEN n.removed THEN n.object || reclaim.anonymised(n.customer_id)
        WHEN n.change = 'delete' AND NOT n.cleared THEN reclaim.customer_object(c)::jsonb || reclaim.anonymised(n.customer_id)
        ELSE reclaim.customer_object(c)::jsonb END
    FROM unnest(p_notes) n LEFT JOIN reclaim.customer_customers c ON c.id = n.customer_id WHERE n.change NOT IN ('moved', 'insert');
  INSERT INTO reclaim.customer_log (customer_id, action, actor, actor_id, actor_role, outcome, correlation_id, detail)
    SELECT n.customer_id, coalesce(n.action, n.change), n.actor, n.actor_id, n.actor_role, 'done', n.correlation_id,
      CASE WHEN n.change = 'freeze' THEN n.detail ELSE '' END
    FROM unnest(p_notes) n WHERE n.change NOT IN ('moved', 'insert');
  INSERT INTO reclaim.customer_told AS t (customer_id, status, version)
    SELECT n.customer_id, CASE n.change WHEN 'freeze' THEN 'frozen' WHEN 'delete' THEN 'deleted' ELSE 'active' END, n.version
    FROM unnest(p_notes) n WHERE n.change <> 'moved'
    ON CONFLICT (customer_id) DO UPDATE SET status = excluded.status, version = excluded.version, told_at = clock_timestamp();
  INSERT INTO reclaim.gate_ended (kind, id) SELECT 'customer', n.customer_id FROM unnest(p_notes) n WHERE n.removed;

  INSERT INTO reclaim.work_items (kind, payload)
    SELECT 'mail', jsonb_build_object('template', 'customer-' || CASE n.change WHEN 'freeze' THEN 'frozen'
        WHEN 'recover' THEN 'recovered' ELSE n.change END, 'customer_id', n.customer_id)
      FROM unnest(p_notes) n WHERE v_mails AND n.change NOT IN ('delete', 'insert')
    UNION ALL
    -- Most have no call: a hundred are looked at in one item.
    SELECT 'hangup', CASE WHEN count(*) = 1 THEN jsonb_build_object('customer_id', min(c.id::text))
        ELSE jsonb_build_object('customer_ids', jsonb_agg(c.id)) END
      FROM (SELECT id, row_number() OVER () / 100 AS part FROM unnest(v_frozen || v_calling) AS id) AS c GROUP BY c.part
    UNION ALL
    SELECT 'anonymise', jsonb_build_object('customer_id', n.customer_id, 'owner_user_id', n.owner_user_id)
      FROM unnest(p_notes) n WHERE n.change = 'delete' AND NOT n.cleared;
  PERFORM pg_notify('reclaim_work', '');
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_consequences FROM PUBLIC;
