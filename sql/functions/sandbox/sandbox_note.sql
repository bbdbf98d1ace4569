-- Records whether this is a sandbox, as the server that starts wants it. deleted: refused, since customers were deleted while
-- it was none. moved: it stays one, since its clock is ahead. Nothing is written where nothing changes, so that a role which
-- may not move the clock can serve.
CREATE OR REPLACE FUNCTION reclaim.sandbox_note(p_sandbox boolean) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_was boolean;
  v_moved boolean;
BEGIN
  SELECT i.sandbox, i.clock_shift <> '0' INTO v_was, v_moved FROM reclaim.installation i;
  IF v_was = p_sandbox THEN
    RETURN CASE WHEN p_sandbox THEN 'on' ELSE 'off' END;
  ELSIF v_was AND v_moved THEN
    RETURN 'moved';
  ELSIF p_sandbox AND (EXISTS (SELECT FROM reclaim.customer_told t WHERE t.status = 'deleted')
      OR EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.status = 'deleted') OR EXISTS (SELECT FROM reclaim.erasures)) THEN
    RETURN 'deleted';
  END IF;
  UPDATE reclaim.installation SET sandbox = p_sandbox;
  RETURN CASE WHEN p_sandbox THEN 'on' ELSE 'off' END;
END
$$;
REVOKE ALL ON FUNCTION reclaim.sandbox_note FROM PUBLIC;
