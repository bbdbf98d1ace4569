-- Registers the tables of a ready set: each service's table is the first of its names that exists in schema public, with
-- customer_id and tm_delete. Rows are marked; every text or JSON of theirs that is no key, no id and none of few values is emptied.
-- lack: why a table does not take part; the others do.
CREATE OR REPLACE FUNCTION reclaim.cascade_preset(p_preset text, p_past boolean) RETURNS TABLE (name text, table_name text, lack text)
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_service record;
  v_home regclass;
  v_scrub text[];
BEGIN
  IF p_preset <> 'voip' THEN
    RAISE EXCEPTION 'there is no preset %', p_preset USING ERRCODE = 'invalid_parameter_value';
  END IF;
  FOR v_service IN SELECT * FROM (VALUES
    ('tag', '{tag_tags}'), ('agent', '{agent_agents}'), ('number', '{number_numbers}'), ('flow', '{flow_flows}'),
    ('campaign', '{campaign_campaigns}'), ('queue', '{queue_queues}'), ('contact', '{contact_contacts}'),
    ('accesskey', '{customer_accesskeys,accesskey_accesskeys}'), ('conversation', '{conversation_conversations}'),
    ('call', '{call_calls}'), ('conference', '{conference_conferences}'), ('route', '{route_routes}'),
    ('storage', '{storage_files,storage_storages}'), ('billing', '{billing_accounts}')) AS s (name, tables)
  LOOP
    name := v_service.name;
    SELECT to_regclass('public.' || one) INTO v_home FROM unnest(v_service.tables::text[]) WITH ORDINALITY AS t (one, place)
      WHERE to_regclass('public.' || one) IS NOT NULL ORDER BY place LIMIT 1;
    table_name := coalesce(v_home::text, 'public.' || (v_service.tables::text[])[1]);
    v_scrub := ARRAY(SELECT a.attname::text FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
      WHERE a.attrelid = v_home AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
        AND (t.typcategory = 'S' OR t.typname IN ('json', 'jsonb'))
        AND a.attname NOT IN ('status', 'state', 'type', 'kind', 'direction', 'method') AND a.attname !~ '(^|_)id$'
        AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = v_home AND k.contype IN ('p', 'f', 'c') AND a.attnum = ANY (k.conkey))
      ORDER BY a.attnum);
    lack := reclaim.cascade_add(name, table_name, 'customer_id', 'tm_delete', v_scrub, NULL, p_past, 'customer', NULL);
    RETURN NEXT;
  END LOOP;
END
$$;
REVOKE ALL ON FUNCTION reclaim.cascade_preset FROM PUBLIC;
