-- On auth.users, where Reclaim may have a trigger (reclaim.users_watch): users who were deleted, or marked as deleted. Runs as its
-- owner: programs that delete users have no rights here. Does nothing where users are not customers.
--
-- Reclaim's own deletions say so in a setting of the transaction, which any role could set: it is believed of Reclaim's roles only.
CREATE OR REPLACE FUNCTION reclaim.user_removed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_users uuid[];
  v_held uuid;
BEGIN
  IF NOT reclaim.users_are_customers() THEN
    RETURN NULL;
  END IF;
  IF TG_OP = 'DELETE' THEN
    v_users := ARRAY(SELECT g.id FROM gone g WHERE g.deleted_at IS NULL);
  ELSE
    v_users := ARRAY[NEW.id];
  END IF;
  SELECT c.id INTO v_held FROM reclaim.customer_customers c
    WHERE c.id = ANY (v_users) AND c.owner_user_id = c.id AND c.hold_at IS NOT NULL AND c.status <> 'deleted' LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'customer % is under legal hold and cannot be deleted', v_held
      USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'reclaim unhold ends the hold.';
  END IF;
  PERFORM reclaim.users_removed(v_users,
    current_setting('reclaim.own_removal', true) IS NOT DISTINCT FROM 'on' AND reclaim.is_own_role());
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION reclaim.user_removed FROM PUBLIC;
