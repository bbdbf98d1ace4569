-- What is told about an erasure, and Reclaim's own participant.

CREATE FUNCTION reclaim.erasure_ledger(p_customer uuid) RETURNS json
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT row_to_json(ledger) FROM (
    SELECT c.id AS customer_id,
      CASE WHEN e.customer_id IS NULL THEN 'not_started' WHEN e.completed_at IS NULL THEN 'pending' ELSE 'complete' END AS status,
      reclaim.rfc3339(e.requested_at) AS requested_at, reclaim.rfc3339(e.completed_at) AS completed_at,
      coalesce((SELECT json_agg(receipt ORDER BY receipt.name) FROM (
        SELECT r.participant AS name, coalesce(p.kind, 'table') AS kind, r.status, r.rows, r.tries,
          reclaim.rfc3339(r.first_tried_at) AS first_tried_at, reclaim.rfc3339(r.done_at) AS done_at, r.error
        FROM reclaim.cascade_receipts r LEFT JOIN reclaim.cascade_participants p ON p.name = r.participant
        WHERE r.customer_id = c.id) AS receipt), '[]') AS participants
    FROM reclaim.customer_customers c LEFT JOIN reclaim.erasures e ON e.customer_id = c.id WHERE c.id = p_customer) AS ledger
$$;

-- What would be deleted, counted up to p_most rows a participant.
CREATE FUNCTION reclaim.erasure_preview(p_customer uuid, p_most integer) RETURNS json
LANGUAGE plpgsql STABLE SET search_path = pg_catalog
AS $$
DECLARE
  v_p reclaim.cascade_participants;
  v_rows bigint;
  v_error text;
  v_all json[] := '{}';
BEGIN
  IF NOT EXISTS (SELECT FROM reclaim.customer_customers WHERE id = p_customer) THEN
    RETURN NULL;
  END IF;
  FOR v_p IN SELECT * FROM reclaim.cascade_participants WHERE enabled ORDER BY name LOOP
    v_rows := NULL;
    v_error := NULL;
    IF v_p.kind = 'table' THEN
      BEGIN
        IF NOT reclaim.sees_all_rows(to_regclass(v_p.table_name), 'SELECT') THEN
          RAISE insufficient_privilege;
        END IF;
        EXECUTE format('SELECT count(*) FROM (SELECT FROM %s WHERE %I = $1::%s AND %s LIMIT $2) AS part',
            to_regclass(v_p.table_name), v_p.customer_column, reclaim.cascade_type(v_p), reclaim.cascade_condition(v_p))
          INTO v_rows USING p_customer, p_most + 1;
      EXCEPTION WHEN OTHERS THEN
        v_error := SQLSTATE;
      END;
    END IF;
    v_all := v_all || json_build_object('name', v_p.name, 'kind', v_p.kind,
      'rows', CASE WHEN v_rows > p_most THEN p_most ELSE v_rows END, 'more', coalesce(v_rows > p_most, false), 'error', v_error);
  END LOOP;
  RETURN json_build_object('customer_id', p_customer, 'status', 'preview', 'participants', array_to_json(v_all));
END
$$;

-- Calls have people's numbers in them, which a trigger empties with the mark. The dialog stays: a call of somebody who was
-- deleted in the middle of it has still to be ended at the switch.
INSERT INTO reclaim.cascade_participants (name, kind, table_name, customer_column, soft_delete_column)
  VALUES ('reclaim.calls', 'table', 'reclaim.call_calls', 'customer_id', 'tm_delete');

REVOKE ALL ON ALL ROUTINES IN SCHEMA reclaim FROM PUBLIC;
