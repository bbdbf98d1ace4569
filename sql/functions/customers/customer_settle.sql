-- Settles a changed row before it is written, whichever program writes it: a change of state that is not possible raises an
-- error; status, tm_delete and the dates fit each other; Reclaim's own columns keep their values against other programs. It
-- writes nothing but the row.
--
-- Every change increases the version, which is never taken from the writer. What a gate must know of records its transaction
-- (changed_xid), by which src/gate/frozen_customers.c finds it.
CREATE OR REPLACE FUNCTION reclaim.customer_settle() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_own boolean := reclaim.is_own_role();
  v_repairs boolean := v_own AND current_setting('reclaim.repairs', true) IS NOT DISTINCT FROM 'on';
  v_change text;
  v_actor record;
  v_now timestamptz;
BEGIN
  IF NEW.id IS DISTINCT FROM OLD.id THEN
    RAISE EXCEPTION 'the id of customer % cannot be changed', OLD.id USING ERRCODE = 'object_not_in_prerequisite_state',
      HINT = 'Events, keys, calls and receipts name it. Insert another customer instead.';
  END IF;
  NEW.status := coalesce(nullif(NEW.status::text, ''), 'active');
  IF NEW.tm_delete IS NOT NULL AND reclaim.is_sentinel(NEW.tm_delete) THEN
    NEW.tm_delete := NULL;
  END IF;
  IF OLD.status = 'deleted' AND (NEW.status <> 'deleted' OR NEW.tm_delete IS NULL) THEN
    RAISE EXCEPTION 'customer % is deleted, and stays so', OLD.id USING ERRCODE = 'object_not_in_prerequisite_state',
      HINT = 'What belonged to it was erased. Insert another customer instead.';
  END IF;
  IF OLD.status = 'deleted' THEN
    NEW.tm_delete := OLD.tm_delete;
  ELSIF NEW.tm_delete IS NOT NULL THEN
    NEW.status := 'deleted';
  ELSIF NEW.status = 'deleted' THEN
    NEW.tm_delete := reclaim.now();
  END IF;

  IF NEW.status <> OLD.status THEN
    -- A row of a user's id, from before users were customers.
    IF NEW.owner_user_id IS NULL AND reclaim.users_are_customers() AND reclaim.may_lock_users() THEN
      NEW.owner_user_id := (SELECT u.id FROM auth.users u WHERE u.id = NEW.id);
    END IF;
    v_change := CASE NEW.status WHEN 'frozen' THEN 'freeze' WHEN 'active' THEN 'recover' WHEN 'deleted' THEN 'delete' END;
    IF v_change IS NOT NULL AND NOT EXISTS (SELECT FROM reclaim.customer_transitions t
        WHERE t.status = OLD.status AND t.change = v_change AND t.outcome = 'changes') THEN
      RAISE EXCEPTION 'customer % is %, it cannot become %', OLD.id, OLD.status, NEW.status
        USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    IF v_change = 'delete' AND OLD.hold_at IS NOT NULL THEN
      RAISE EXCEPTION 'customer % is under legal hold and cannot be deleted', OLD.id
        USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'reclaim unhold ends the hold.';
    END IF;
  END IF;

  NEW.version := OLD.version;
  NEW.changed_xid := OLD.changed_xid;
  IF NOT v_own THEN
    NEW.frozen_by := OLD.frozen_by;
    NEW.freeze_reason := OLD.freeze_reason;
    NEW.deletion_effective_at := OLD.deletion_effective_at;
    NEW.hold_reason := OLD.hold_reason;
    NEW.hold_at := OLD.hold_at;
    NEW.frozen_api_at := OLD.frozen_api_at;
    NEW.frozen_calls_at := OLD.frozen_calls_at;
  END IF;
  IF NEW.status = OLD.status THEN
    NEW.frozen_billing_at := coalesce(OLD.frozen_billing_at, CASE WHEN v_repairs AND NEW.status = 'frozen' THEN reclaim.now() END);
  END IF;

  IF NEW.status = 'frozen' THEN
    v_now := reclaim.now();
    -- No date of another program can move the deletion, nor the time from which nothing is charged.
    IF NOT v_own THEN
      NEW.tm_deletion_scheduled := CASE WHEN v_change = 'freeze' THEN NEW.frozen_billing_at ELSE OLD.tm_deletion_scheduled END;
    END IF;
    IF v_change = 'freeze' OR NEW.frozen_by IS NULL THEN
      v_actor := reclaim.change_actor();
      NEW.frozen_by := coalesce(NEW.frozen_by, reclaim.freezer(v_actor.kind));
      NEW.freeze_reason := coalesce(NEW.freeze_reason, nullif(v_actor.reason, ''));
    END IF;
    IF v_change = 'freeze' THEN
      NEW.tm_deletion_scheduled := coalesce(NEW.tm_deletion_scheduled, v_now);
      NEW.frozen_billing_at := coalesce(NEW.frozen_billing_at, v_now);
      NEW.deletion_effective_at := coalesce(CASE WHEN v_own THEN NEW.deletion_effective_at END,
        NEW.tm_deletion_scheduled + reclaim.grace());
    ELSE
      NEW.tm_deletion_scheduled := coalesce(NEW.tm_deletion_scheduled, OLD.tm_deletion_scheduled);
      IF NEW.deletion_effective_at IS NULL THEN
        NEW.deletion_effective_at := NEW.tm_deletion_scheduled + reclaim.grace();
      ELSIF v_own AND NEW.deletion_effective_at = OLD.deletion_effective_at THEN
        NEW.deletion_effective_at := OLD.deletion_effective_at + (NEW.tm_deletion_scheduled - OLD.tm_deletion_scheduled);
      END IF;
      -- The person has not been able to rely on the date while the hold lasted.
      IF OLD.hold_at IS NOT NULL AND NEW.hold_at IS NULL AND NEW.deletion_effective_at <= v_now THEN
        NEW.deletion_effective_at := v_now + interval '7 days';
      END IF;
    END IF;
  ELSE
    NEW.deletion_effective_at := NULL;
    NEW.frozen_by := NULL;
    NEW.freeze_reason := NULL;
    NEW.frozen_api_at := NULL;
    NEW.frozen_calls_at := NULL;
    NEW.frozen_billing_at := NULL;
    IF NEW.status = 'active' THEN
      NEW.tm_deletion_scheduled := NULL;
    END IF;
  END IF;

  IF v_repairs OR (NEW.status, NEW.tm_deletion_scheduled, NEW.owner_user_id)
      IS DISTINCT FROM (OLD.status, OLD.tm_deletion_scheduled, OLD.owner_user_id) THEN
    NEW.frozen_api_at := NULL;
    NEW.frozen_calls_at := NULL;
  END IF;
  IF v_repairs OR (NEW.status, NEW.tm_deletion_scheduled, NEW.owner_user_id, NEW.deletion_effective_at, NEW.frozen_by, NEW.hold_at)
      IS DISTINCT FROM (OLD.status, OLD.tm_deletion_scheduled, OLD.owner_user_id, OLD.deletion_effective_at, OLD.frozen_by,
      OLD.hold_at) THEN
    NEW.changed_xid := pg_current_xact_id();
  END IF;
  -- A layer that records that it has applied the freeze does not change the customer.
  IF v_repairs OR (NEW.status, NEW.tm_deletion_scheduled, NEW.deletion_effective_at, NEW.frozen_by, NEW.freeze_reason, NEW.name,
      NEW.detail, NEW.email, NEW.phone_number, NEW.address, NEW.webhook_method, NEW.webhook_uri, NEW.billing_account_id,
      NEW.owner_user_id, NEW.hold_reason)
      IS DISTINCT FROM (OLD.status, OLD.tm_deletion_scheduled, OLD.deletion_effective_at, OLD.frozen_by, OLD.freeze_reason,
      OLD.name, OLD.detail, OLD.email, OLD.phone_number, OLD.address, OLD.webhook_method, OLD.webhook_uri,
      OLD.billing_account_id, OLD.owner_user_id, OLD.hold_reason) THEN
    NEW.version := OLD.version + 1;
    NEW.tm_update := clock_timestamp();
  END IF;
  RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_settle FROM PUBLIC;
