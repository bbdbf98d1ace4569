-- A new customer: status and tm_delete fit each other; one that is frozen has its dates. Only Reclaim's own roles set the
-- columns that are Reclaim's. The version of an id that was used before goes on, since its events have had the numbers below.
--
-- Where users are customers, the row of a user's id has that user as its owner. The user is locked against call set-ups, which lock it
-- in share mode while there is no row.
CREATE OR REPLACE FUNCTION reclaim.customer_settle_new() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_actor record;
  v_now timestamptz;
BEGIN
  IF coalesce(NEW.owner_user_id, NEW.id) = NEW.id AND reclaim.users_are_customers() AND reclaim.may_lock_users() THEN
    PERFORM FROM auth.users u WHERE u.id = NEW.id FOR NO KEY UPDATE;
    IF FOUND THEN
      NEW.owner_user_id := NEW.id;
    END IF;
  END IF;
  NEW.status := coalesce(nullif(NEW.status::text, ''), 'active');
  IF NEW.tm_delete IS NOT NULL AND reclaim.is_sentinel(NEW.tm_delete) THEN
    NEW.tm_delete := NULL;
  END IF;
  IF NEW.tm_delete IS NOT NULL THEN
    NEW.status := 'deleted';
  ELSIF NEW.status = 'deleted' THEN
    NEW.tm_delete := reclaim.now();
  END IF;
  NEW.version := greatest(coalesce(NEW.version, 1), 1,
    (SELECT t.version + 1 FROM reclaim.customer_told t WHERE t.customer_id = NEW.id));
  NEW.changed_xid := pg_current_xact_id();
  NEW.frozen_api_at := NULL;
  NEW.frozen_calls_at := NULL;
  NEW.frozen_billing_at := NULL;
  IF NOT reclaim.is_own_role() THEN
    NEW.deletion_effective_at := NULL;
    NEW.frozen_by := NULL;
    NEW.freeze_reason := NULL;
    NEW.hold_reason := NULL;
    NEW.hold_at := NULL;
  END IF;
  IF NEW.status = 'frozen' THEN
    v_actor := reclaim.change_actor();
    v_now := reclaim.now();
    NEW.tm_deletion_scheduled := CASE WHEN reclaim.is_own_role() THEN coalesce(NEW.tm_deletion_scheduled, v_now) ELSE v_now END;
    NEW.deletion_effective_at := coalesce(NEW.deletion_effective_at, NEW.tm_deletion_scheduled + reclaim.grace());
    NEW.frozen_by := coalesce(NEW.frozen_by, reclaim.freezer(v_actor.kind));
    NEW.freeze_reason := coalesce(NEW.freeze_reason, nullif(v_actor.reason, ''));
    NEW.frozen_billing_at := v_now;
  ELSE
    NEW.deletion_effective_at := NULL;
    NEW.frozen_by := NULL;
    NEW.freeze_reason := NULL;
    IF NEW.status = 'active' THEN
      NEW.tm_deletion_scheduled := NULL;
    END IF;
  END IF;
  RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_settle_new FROM PUBLIC;
