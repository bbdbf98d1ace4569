-- Deletes these customers, whose rows the caller has locked and checked. p_sealed: for each the sealed address of its last
-- mail (src/customers/last_mail.h), or null for none. One transaction: the state, personal data cleared, credentials and
-- login removed, the event, the audit row, and the receipts that the cascade has to complete.
--
-- JIT and sequential scans off: these are indexed look-ups, compiling costs more than it saves.
CREATE OR REPLACE FUNCTION reclaim.delete_customers(p_ids uuid[], p_sealed text[], p_action text, p_actor text, p_actor_id uuid,
  p_correlation_id uuid) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_now timestamptz := reclaim.now();
  v_real timestamptz := clock_timestamp(); -- keys and the cascade do not follow the installation's time
  v_owners uuid[];
  v_count integer;
  v_others text := reclaim.customer_columns_to_clear();
BEGIN
  IF v_others IS NOT NULL THEN
    EXECUTE format('UPDATE reclaim.customer_customers SET %s WHERE id = ANY ($1)', v_others) USING p_ids;
  END IF;
  IF EXISTS (SELECT FROM reclaim.mailbox) THEN
    DELETE FROM reclaim.mailbox m USING reclaim.customer_customers c LEFT JOIN auth.users u ON u.id = c.owner_user_id
      WHERE c.id = ANY (p_ids) AND m.recipient IN (c.email, u.email);
  END IF;
  UPDATE reclaim.event_outbox SET payload = payload || jsonb_build_object('name', 'deleted_user_' || customer_id,
      'email', 'deleted_' || customer_id || '@removed.invalid', 'detail', '', 'phone_number', '', 'address', '',
      'webhook_method', '', 'webhook_uri', '')
    WHERE customer_id = ANY (p_ids);
  UPDATE reclaim.customer_log SET detail = '' WHERE customer_id = ANY (p_ids) AND detail <> '';

  WITH gone AS (
    UPDATE reclaim.customer_customers c SET name = 'deleted_user_' || c.id, detail = '',
      email = 'deleted_' || c.id || '@removed.invalid', phone_number = '', address = '', webhook_method = '',
      webhook_uri = '', hold_reason = NULL, hold_at = NULL, status = 'deleted', tm_delete = coalesce(c.tm_delete, v_now)
    WHERE c.id = ANY (p_ids)
    RETURNING c.id, c.version, c.owner_user_id, reclaim.customer_object(c)::jsonb AS object
  ), told AS (
    INSERT INTO reclaim.event_outbox (sequence, type, customer_id, payload)
      SELECT version, 'customer_deleted', id, object FROM gone
  ), logged AS (
    INSERT INTO reclaim.customer_log (customer_id, action, actor, actor_id, outcome, correlation_id)
      SELECT id, p_action, p_actor, p_actor_id, 'done', p_correlation_id FROM gone
  )
  SELECT count(*), array_agg(owner_user_id) FILTER (WHERE owner_user_id IS NOT NULL) INTO v_count, v_owners FROM gone;
  IF v_count <> cardinality(p_ids) OR NOT reclaim.sees_all_rows('reclaim.billing_accounts', 'UPDATE')
      OR NOT reclaim.sees_all_rows('reclaim.access_keys', 'UPDATE') THEN
    RAISE insufficient_privilege USING MESSAGE = 'row-level security hides customers, accounts or keys from this role';
  END IF;

  UPDATE reclaim.access_keys SET revoked_at = coalesce(revoked_at, v_real), name = ''
    WHERE customer_id = ANY (p_ids) AND (revoked_at IS NULL OR name <> '');
  UPDATE reclaim.billing_accounts SET status = 'deleted', tm_delete = coalesce(tm_delete, v_now), name = ''
    WHERE customer_id = ANY (p_ids) AND (status <> 'deleted' OR name <> '');
  DELETE FROM reclaim.reminders WHERE customer_id = ANY (p_ids);
  IF v_owners IS NOT NULL THEN
    PERFORM reclaim.remove_users(v_owners);
  END IF;

  -- A participant is either seen here, or is added after this commit and then finds these customers as deleted.
  PERFORM pg_advisory_xact_lock_shared(1919247212, 4);
  INSERT INTO reclaim.cascade_receipts (customer_id, participant, next_try_at)
    SELECT one, p.name, v_real FROM unnest(p_ids) AS one CROSS JOIN reclaim.cascade_participants p WHERE p.enabled
    ON CONFLICT DO NOTHING;
  INSERT INTO reclaim.erasures (customer_id, requested_at, completed_at)
    SELECT one, v_real, CASE WHEN NOT EXISTS (SELECT FROM reclaim.cascade_participants p WHERE p.enabled) THEN v_real END
    FROM unnest(p_ids) AS one ON CONFLICT DO NOTHING;
  INSERT INTO reclaim.work_items (kind, payload)
    SELECT 'mail', jsonb_build_object('template', 'customer-deleted', 'customer_id', one, 'sealed', sealed)
    FROM unnest(p_ids, p_sealed) AS mail (one, sealed) WHERE sealed IS NOT NULL;
  RETURN v_count;
END
$$;
REVOKE ALL ON FUNCTION reclaim.delete_customers FROM PUBLIC;
