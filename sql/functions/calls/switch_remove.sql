-- Takes a switch out. While it has live calls only with p_force: no switch can confirm their end any more, so they end
-- in the table. Outcomes: removed; unknown; busy.
CREATE OR REPLACE FUNCTION reclaim.switch_remove(p_name text, p_force boolean, OUT outcome text, OUT live bigint,
  OUT by_setting boolean)
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_first text := (SELECT s.name FROM reclaim.switches s ORDER BY s.created_at, s.name LIMIT 1);
BEGIN
  outcome := 'unknown';
  SELECT s.url IS NULL INTO by_setting FROM reclaim.switches s WHERE s.name = p_name FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  SELECT count(*) INTO live FROM reclaim.call_calls c
    WHERE c.status <> 'hangup' AND c.sip_call_id IS NOT NULL AND coalesce(c.switch, v_first) = p_name;
  outcome := CASE WHEN live > 0 AND NOT p_force THEN 'busy' ELSE 'removed' END;
  IF outcome = 'removed' THEN
    -- Otherwise they would count as calls of the switch that is the first now.
    UPDATE reclaim.call_calls c SET switch = p_name
      WHERE c.status <> 'hangup' AND c.sip_call_id IS NOT NULL AND c.switch IS NULL AND v_first = p_name;
    DELETE FROM reclaim.switches s WHERE s.name = p_name;
    PERFORM reclaim.hangup_take_back(p_name);
  END IF;
END
$$;
REVOKE ALL ON FUNCTION reclaim.switch_remove FROM PUBLIC;
