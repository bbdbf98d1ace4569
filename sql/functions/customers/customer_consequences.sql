-- All that follows from changes of customers' state, at most one change of each, set by set: billing, credentials, the erasure,
-- the event, the audit row, and the work that is left: mails, calls to end, personal data to clear. Sorted by id, so that two of
-- these transactions lock in the same order; the customers' rows are locked. p_actor: what reclaim.change_actor() says.
CREATE OR REPLACE FUNCTION reclaim.customer_consequences(p_notes reclaim.customer_pending[], p_actor record) RETURNS void
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
    PERFORM reclaim.erasure_begin(v_gone, p_actor.clears);
    INSERT INTO reclaim.event_outbox (sequence, type, customer_id, payload)
      SELECT n.version, 'customer_deleted', n.customer_id, reclaim.anonymised(n.customer_id)
        || jsonb_build_object('id', n.customer_id, 'status', 'deleted') || coalesce(n.object,
          jsonb_build_object('billing_account_id', c.billing_account_id, 'tm_create', reclaim.rfc3339(c.tm_create),
            'tm_update', reclaim.rfc3339(c.tm_update), 'tm_delete', reclaim.rfc3339(c.tm_delete),
            'tm_deletion_scheduled', reclaim.rfc3339(c.tm_deletion_scheduled)))
      FROM unnest(p_notes) n LEFT JOIN reclaim.customer_customers c ON c.id = n.customer_id WHERE n.change = 'delete';
  END IF;
  IF v_frozen <> '{}' OR v_active <> '{}' THEN
    INSERT INTO reclaim.event_outbox (sequence, type, customer_id, payload)
      SELECT n.version, CASE n.change WHEN 'freeze' THEN 'customer_frozen' ELSE 'customer_recovered' END, n.customer_id,
        reclaim.customer_object(c)::jsonb
      FROM unnest(p_notes) n JOIN reclaim.customer_customers c ON c.id = n.customer_id WHERE n.change IN ('freeze', 'recover');
  END IF;
  INSERT INTO reclaim.customer_log (customer_id, action, actor, actor_id, actor_role, outcome, correlation_id, detail)
    SELECT n.customer_id, coalesce(p_actor.action, n.change), p_actor.kind, p_actor.id, p_actor.role, 'done',
      p_actor.correlation_id, CASE WHEN n.change = 'freeze' THEN p_actor.reason ELSE '' END
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
    -- With the owner: the row may be gone by the time it is run.
    SELECT 'anonymise', jsonb_build_object('customer_id', n.customer_id, 'owner_user_id', coalesce(n.owner_user_id, c.owner_user_id))
      FROM unnest(p_notes) n LEFT JOIN reclaim.customer_customers c ON c.id = n.customer_id
      WHERE n.change = 'delete' AND NOT p_actor.clears;
  PERFORM pg_notify('reclaim_work', '');
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_consequences FROM PUBLIC;
