-- All that follows from changes of customers' state, at most one change of each, set by set: billing, credentials, the erasure,
-- the event, the audit row, and the work that is left: mails, calls to end, personal data to clear. The notes are sorted by id, so
-- that two of these transactions lock in the same order; the customers' rows are locked. p_actor: what reclaim.change_actor() says.
--
-- One statement for what is written in any case: each costs a single freeze as much as the rows in it.
CREATE OR REPLACE FUNCTION reclaim.customer_consequences(p_notes reclaim.customer_pending[], p_actor record) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_note reclaim.customer_pending;
  v_frozen uuid[] := '{}';
  v_active uuid[] := '{}';
  v_gone uuid[] := '{}';
  v_moved uuid[] := '{}';
  v_calling uuid[];
  v_remaining jsonb; -- on the accounts of customers that are deleted
BEGIN
  FOREACH v_note IN ARRAY p_notes LOOP
    CASE v_note.change
      WHEN 'freeze' THEN v_frozen := v_frozen || v_note.customer_id;
      WHEN 'recover' THEN v_active := v_active || v_note.customer_id;
      WHEN 'delete' THEN v_gone := v_gone || v_note.customer_id;
      WHEN 'moved' THEN v_moved := v_moved || v_note.customer_id;
      ELSE NULL; -- insert, import
    END CASE;
  END LOOP;
  v_calling := v_frozen;
  IF v_gone <> '{}' THEN
    v_remaining := reclaim.billing_remaining(v_gone);
  END IF;
  PERFORM reclaim.billing_follow_customers(v_frozen, v_active, v_gone);
  IF v_gone <> '{}' THEN
    PERFORM reclaim.revoke_keys(v_gone);
    PERFORM reclaim.anonymise_events(v_gone);
    UPDATE reclaim.customer_log SET detail = '' WHERE customer_id = ANY (v_gone) AND detail <> '';
    DELETE FROM reclaim.reminders WHERE customer_id = ANY (v_gone);
    PERFORM reclaim.erasure_begin(v_gone, p_actor.clears);
    v_calling := v_calling || reclaim.customers_with_calls(v_gone);
    -- With the owner: the row may be gone by the time it is run.
    INSERT INTO reclaim.work_items (kind, payload)
      SELECT 'anonymise', jsonb_build_object('customer_id', n.customer_id, 'owner_user_id', coalesce(n.owner_user_id, c.owner_user_id))
      FROM unnest(p_notes) n LEFT JOIN reclaim.customer_customers c ON c.id = n.customer_id
      WHERE n.change = 'delete' AND NOT p_actor.clears;
    INSERT INTO reclaim.gate_ended (kind, id) SELECT 'customer', n.customer_id FROM unnest(p_notes) n WHERE n.removed;
    -- The owner of a row that is gone becomes no customer of its own until its login is gone, too.
    IF reclaim.users_are_customers() THEN
      INSERT INTO reclaim.customer_told (customer_id, status, version)
        SELECT DISTINCT n.owner_user_id, 'deleted', 1 FROM unnest(p_notes) n WHERE n.removed AND n.owner_user_id <> n.customer_id
        ON CONFLICT DO NOTHING;
    END IF;
  END IF;

  IF v_moved <> '{}' THEN
    PERFORM reclaim.reminders_restart(v_moved);
  END IF;

  WITH note AS MATERIALIZED (
    SELECT * FROM unnest(p_notes) n
  ), event AS (
    INSERT INTO reclaim.event_outbox (epoch, sequence, type, customer_id, payload)
      SELECT (SELECT epoch FROM reclaim.installation), n.version, 'customer_' || CASE n.change WHEN 'freeze' THEN 'frozen' WHEN 'recover' THEN 'recovered' ELSE 'deleted' END,
        n.customer_id, CASE WHEN n.change <> 'delete' THEN reclaim.customer_object(c)::jsonb
          ELSE CASE WHEN n.removed THEN n.object ELSE reclaim.customer_object_deleted(c.id, c.billing_account_id,
              c.tm_deletion_scheduled, c.tm_create, c.tm_update, c.tm_delete) END
            || jsonb_build_object('remaining_balance_micros', v_remaining -> n.customer_id::text) END
      FROM note n LEFT JOIN reclaim.customer_customers c ON c.id = n.customer_id WHERE n.change NOT IN ('moved', 'insert', 'import')
  ), logged AS (
    INSERT INTO reclaim.customer_log (customer_id, action, actor, actor_id, actor_role, outcome, correlation_id, detail)
      SELECT n.customer_id, coalesce(p_actor.action, n.change), p_actor.kind, p_actor.id, p_actor.role, 'done',
        p_actor.correlation_id, CASE WHEN n.change = 'freeze' THEN p_actor.reason ELSE '' END
      FROM note n WHERE n.change NOT IN ('moved', 'insert', 'import')
  ), counted AS (
    INSERT INTO reclaim.customer_frozen (customer_id, frozen_at, by_owner)
      SELECT n.customer_id, (SELECT reclaim.now()), p_actor.kind IN ('owner', 'key') FROM note n WHERE n.change = 'freeze'
  ), told AS (
    INSERT INTO reclaim.customer_told AS t (customer_id, status, version, remaining_micros, language, last_freeze)
      SELECT n.customer_id, CASE n.change WHEN 'freeze' THEN 'frozen' WHEN 'delete' THEN 'deleted' WHEN 'import' THEN 'deleted' ELSE 'active' END,
        n.version, (v_remaining ->> n.customer_id::text)::numeric,
        CASE WHEN n.change IN ('freeze', 'recover') THEN nullif(current_setting('reclaim.language', true), '') END, n.layers
      FROM note n WHERE n.change <> 'moved'
      ON CONFLICT (customer_id) DO UPDATE SET status = excluded.status, version = excluded.version, told_at = clock_timestamp(),
        remaining_micros = excluded.remaining_micros, language = coalesce(excluded.language, t.language),
        last_freeze = coalesce(excluded.last_freeze, t.last_freeze)
  )
  INSERT INTO reclaim.work_items (kind, payload)
    SELECT 'mail', jsonb_strip_nulls(jsonb_build_object('template', 'customer-' || CASE n.change WHEN 'freeze' THEN 'frozen'
        WHEN 'recover' THEN 'recovered' ELSE n.change END, 'customer_id', n.customer_id,
        'language', nullif(current_setting('reclaim.language', true), '')))
      FROM note n WHERE n.change IN ('freeze', 'recover', 'moved') AND (SELECT mails FROM reclaim.installation)
    UNION ALL
    -- Most have no call: a hundred are looked at in one item.
    SELECT 'hangup', CASE WHEN cardinality(v_calling) = 1 THEN jsonb_build_object('customer_id', v_calling[1])
        ELSE jsonb_build_object('customer_ids', to_jsonb(v_calling[part : part + 99])) END
      FROM generate_series(1, cardinality(v_calling), 100) AS part;
  PERFORM pg_notify('reclaim_work', '');
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_consequences FROM PUBLIC;
