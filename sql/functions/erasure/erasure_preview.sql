-- What would be deleted, counted up to p_most rows a participant.
CREATE OR REPLACE FUNCTION reclaim.erasure_preview(p_customer uuid, p_most integer) RETURNS json
LANGUAGE plpgsql STABLE SET search_path = pg_catalog
AS $$
DECLARE
  v_p reclaim.cascade_participants;
  v_rows bigint;
  v_error text;
  v_keys uuid[];
  v_all json[] := '{}';
BEGIN
  IF NOT EXISTS (SELECT FROM reclaim.customer_row(p_customer)) THEN
    RETURN NULL;
  END IF;
  FOR v_p IN SELECT * FROM reclaim.cascade_participants WHERE enabled ORDER BY name LOOP
    v_rows := NULL;
    v_error := NULL;
    IF v_p.kind <> 'remote' THEN
      BEGIN
        IF v_p.kind = 'table' AND NOT reclaim.sees_all_rows(to_regclass(v_p.table_name), 'SELECT') THEN
          RAISE insufficient_privilege;
        END IF;
        -- A user who has another customer is not erased with this one.
        v_keys := CASE v_p.id_of WHEN 'customer' THEN ARRAY[p_customer]
          WHEN 'account' THEN (reclaim.cascade_keys(v_p, ARRAY[p_customer])).keys
          ELSE ARRAY(SELECT one FROM unnest(reclaim.users_of_customers(ARRAY[p_customer])
              || ARRAY(SELECT i.id FROM reclaim.implied_customer(p_customer) i)) AS one
            WHERE NOT EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.owner_user_id = one AND c.status <> 'deleted' AND c.id <> p_customer)
              AND NOT EXISTS (SELECT FROM reclaim.customer_members m WHERE m.user_id = one AND m.customer_id <> p_customer)
              AND NOT EXISTS (SELECT FROM reclaim.implied_customer(one) i WHERE i.id <> p_customer)) END;
        IF v_p.kind = 'storage' THEN
          v_rows := reclaim.storage_count(v_p, v_keys, p_most + 1);
        ELSE
          EXECUTE format('SELECT count(*) FROM (SELECT FROM %s AS t WHERE t.%I = ANY ($1::%s[]) AND %s LIMIT $2) AS part',
              to_regclass(v_p.table_name), v_p.customer_column, reclaim.cascade_type(v_p), reclaim.cascade_condition(v_p))
            INTO v_rows USING v_keys, p_most + 1;
        END IF;
      EXCEPTION WHEN OTHERS THEN
        v_error := SQLSTATE;
      END;
    END IF;
    v_all := v_all || json_build_object('name', v_p.name, 'label', v_p.label, 'kind', v_p.kind,
      'rows', CASE WHEN v_rows > p_most THEN p_most ELSE v_rows END, 'more', coalesce(v_rows > p_most, false), 'error', v_error);
  END LOOP;
  RETURN json_build_object('customer_id', p_customer, 'status', 'preview', 'participants', array_to_json(v_all));
END
$$;
REVOKE ALL ON FUNCTION reclaim.erasure_preview FROM PUBLIC;
