-- Erases again, in every participant, the customers of lost lines behind p_after, p_limit at most, without any mail. last: the id of the
-- last one; lines: how many were done, 0 when none is left; erased: customers that were there again; absent: those that were not, whose participants are asked all
-- the same.
CREATE OR REPLACE FUNCTION reclaim.replay_erasures(p_after bigint, p_limit integer, OUT last bigint, OUT lines integer, OUT erased integer, OUT absent integer)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_ids uuid[];
  v_hashes text[];
  v_requested timestamptz[];
  v_users uuid[];
  v_there uuid[];
  v_absent uuid[];
  v_lines bigint[];
BEGIN
  SELECT array_agg(l.id), array_agg(DISTINCT (l.claims ->> 'customer')::uuid) INTO v_lines, v_ids
    FROM (SELECT n.id, split_part(n.line, E'\t', 1)::jsonb AS claims FROM reclaim.journal_lines n
      WHERE n.lost AND n.kind = 'erasure' AND n.id > p_after ORDER BY n.id LIMIT p_limit) AS l;
  lines := coalesce(cardinality(v_lines), 0);
  last := coalesce((SELECT max(one) FROM unnest(v_lines) AS one), p_after);
  erased := 0;
  absent := 0;
  IF lines = 0 THEN
    RETURN;
  END IF;
  -- The last line of each, in the order of ids; what the certificate names, with colons between, and no address to mail to.
  WITH line AS (
    SELECT DISTINCT ON (1) (c.claims ->> 'customer')::uuid AS customer, c.claims FROM (
        SELECT n.id, split_part(n.line, E'\t', 1)::jsonb AS claims FROM reclaim.journal_lines n WHERE n.id = ANY (v_lines)) AS c
      ORDER BY 1, c.id DESC)
  SELECT array_agg(customer ORDER BY customer), array_agg(concat_ws(':', '', coalesce(claims ->> 'address', ''), coalesce(claims ->> 'link', ''),
      coalesce(claims ->> 'keyed_address', '')) ORDER BY customer), array_agg((claims ->> 'requested_at')::timestamptz ORDER BY customer)
    INTO v_ids, v_hashes, v_requested FROM line;
  IF reclaim.users_are_customers() THEN
    PERFORM reclaim.customer_make(one) FROM unnest(v_ids) AS one;
  END IF;
  PERFORM FROM reclaim.customer_customers c WHERE c.id = ANY (v_ids) ORDER BY c.id FOR UPDATE;
  v_there := ARRAY(SELECT c.id FROM reclaim.customer_customers c WHERE c.id = ANY (v_ids) AND (c.status <> 'deleted'
    OR NOT EXISTS (SELECT FROM reclaim.erasures e WHERE e.customer_id = c.id)) ORDER BY c.id);
  v_absent := ARRAY(SELECT one FROM unnest(v_ids) AS one WHERE NOT EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.id = one)
    AND NOT EXISTS (SELECT FROM reclaim.erasures e WHERE e.customer_id = one) ORDER BY one);
  PERFORM reclaim.change_by('operator', NULL, NULL, NULL, 'replay', true);
  UPDATE reclaim.customer_customers SET hold_at = NULL, hold_reason = NULL WHERE id = ANY (v_there) AND hold_at IS NOT NULL;
  IF v_there <> '{}' THEN
    erased := reclaim.delete_customers(v_there, ARRAY(SELECT h.hashes FROM unnest(v_there) AS t (id)
      JOIN unnest(v_ids, v_hashes) AS h (id, hashes) USING (id) ORDER BY id), 'replay', 'operator', NULL, NULL);
  END IF;
  absent := cardinality(v_absent);
  IF absent > 0 THEN
    PERFORM reclaim.erasure_begin(v_absent, true);
    INSERT INTO reclaim.event_outbox (epoch, sequence, type, customer_id, payload)
      SELECT (SELECT i.epoch FROM reclaim.installation i), 1, 'customer_deleted', one,
        reclaim.customer_object_deleted(one, NULL, NULL, NULL, NULL, reclaim.now()) FROM unnest(v_absent) AS one;
    INSERT INTO reclaim.customer_log (customer_id, action, actor, outcome)
      SELECT one, 'replay', 'operator', 'done' FROM unnest(v_absent) AS one;
  END IF;
  PERFORM reclaim.erasure_address(v_ids, v_hashes);
  UPDATE reclaim.erasures e SET requested_at = n.at FROM unnest(v_ids, v_requested) AS n (id, at)
    WHERE e.customer_id = n.id AND e.certificate_id IS NULL AND n.at < e.requested_at;
  INSERT INTO reclaim.erasure_users (customer_id, user_id)
    SELECT DISTINCT (c.claims ->> 'customer')::uuid, u.id::uuid
      FROM (SELECT split_part(n.line, E'\t', 1)::jsonb AS claims FROM reclaim.journal_lines n WHERE n.id = ANY (v_lines)) AS c,
        jsonb_array_elements_text(c.claims -> 'users') AS u (id)
      ON CONFLICT DO NOTHING;
  v_users := ARRAY(SELECT DISTINCT u.user_id FROM reclaim.erasure_users u JOIN auth.users a ON a.id = u.user_id
    WHERE u.customer_id = ANY (v_ids) AND a.deleted_at IS NULL);
  IF v_users <> '{}' THEN
    PERFORM reclaim.remove_users(v_users, v_ids);
  END IF;
  PERFORM reclaim.erasures_settle(v_ids);
  PERFORM reclaim.replay_cooldowns(v_lines);
  UPDATE reclaim.journal_lines SET lost = false WHERE id = ANY (v_lines);
  PERFORM pg_notify('reclaim_events', '');
END
$$;
REVOKE ALL ON FUNCTION reclaim.replay_erasures FROM PUBLIC;
