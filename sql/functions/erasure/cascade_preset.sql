-- Registers the tables of a ready set: each service's table is the first of its names that exists in schema public, with
-- customer_id and tm_delete. Rows are marked and emptied (reclaim.cascade_clearings).
-- lack: why a table does not take part; the others do.
CREATE OR REPLACE FUNCTION reclaim.cascade_preset(p_preset text, p_past boolean) RETURNS TABLE (name text, table_name text, lack text)
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_service record;
  v_home regclass;
BEGIN
  IF p_preset <> 'voip' THEN
    RAISE EXCEPTION 'there is no preset %', p_preset USING ERRCODE = 'invalid_parameter_value';
  END IF;
  FOR v_service IN SELECT * FROM (VALUES
    ('tag', 'Tags', '{tag_tags}'), ('agent', 'Agents', '{agent_agents}'), ('number', 'Telephone numbers', '{number_numbers}'),
    ('flow', 'Call flows', '{flow_flows}'), ('campaign', 'Campaigns', '{campaign_campaigns}'), ('queue', 'Queues', '{queue_queues}'),
    ('contact', 'Contacts', '{contact_contacts}'), ('accesskey', 'Access keys', '{customer_accesskeys,accesskey_accesskeys}'),
    ('conversation', 'Conversations', '{conversation_conversations}'), ('call', 'Calls', '{call_calls}'),
    ('conference', 'Conferences', '{conference_conferences}'), ('route', 'Routes', '{route_routes}'),
    ('storage', 'Files', '{storage_files,storage_storages}'), ('billing', 'Billing accounts', '{billing_accounts}'))
    AS s (name, label, tables)
  LOOP
    name := v_service.name;
    SELECT to_regclass('public.' || one) INTO v_home FROM unnest(v_service.tables::text[]) WITH ORDINALITY AS t (one, place)
      WHERE to_regclass('public.' || one) IS NOT NULL ORDER BY place LIMIT 1;
    table_name := coalesce(v_home::text, 'public.' || (v_service.tables::text[])[1]);
    lack := reclaim.cascade_add(name, table_name, 'customer_id', 'tm_delete', '{*}', NULL, p_past, 'customer',
      coalesce((SELECT p.label FROM reclaim.cascade_participants p WHERE p.name = v_service.name AND p.label <> ''), v_service.label));
    RETURN NEXT;
  END LOOP;
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_preset FROM PUBLIC;
