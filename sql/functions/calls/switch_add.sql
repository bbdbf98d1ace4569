-- Records a switch, or a new address of one, for every instance. Returns whether it is new, and how many others there are.
CREATE OR REPLACE FUNCTION reclaim.switch_add(p_name text, p_url text, OUT added boolean, OUT others bigint)
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
BEGIN
  INSERT INTO reclaim.switches AS s (name, url, address) VALUES (p_name, p_url, p_url)
    ON CONFLICT (name) DO UPDATE SET url = EXCLUDED.url, address = EXCLUDED.address, updated_at = clock_timestamp()
    RETURNING s.updated_at IS NULL INTO added;
  SELECT count(*) INTO others FROM reclaim.switches s WHERE s.name <> p_name;
  PERFORM reclaim.hangup_take_back(p_name);
END
$$;
REVOKE ALL ON FUNCTION reclaim.switch_add FROM PUBLIC;
