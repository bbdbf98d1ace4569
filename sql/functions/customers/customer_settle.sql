-- Keeps status and tm_delete consistent, whichever program writes them. Every change increases the version; a change of
-- state records its transaction, by which src/gate/frozen_customers.c finds changes.
CREATE OR REPLACE FUNCTION reclaim.customer_settle() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog
AS $$
BEGIN
  NEW.status := coalesce(nullif(NEW.status, ''), 'active');
  IF NEW.tm_delete IS NOT NULL AND reclaim.is_sentinel(NEW.tm_delete) THEN
    NEW.tm_delete := NULL;
  END IF;
  IF NEW.tm_delete IS NOT NULL THEN
    NEW.status := 'deleted';
  ELSIF NEW.status = 'deleted' THEN
    NEW.tm_delete := reclaim.now();
  END IF;
  IF NEW.status = 'active' THEN
    NEW.tm_deletion_scheduled := NULL;
  ELSIF NEW.status = 'frozen' THEN
    NEW.tm_deletion_scheduled := coalesce(NEW.tm_deletion_scheduled, reclaim.now());
  END IF;
  IF NEW.status <> 'frozen' THEN
    NEW.frozen_api_at := NULL;
    NEW.frozen_calls_at := NULL;
    NEW.frozen_billing_at := NULL;
  END IF;
  IF TG_OP = 'INSERT' THEN
    NEW.version := greatest(coalesce(NEW.version, 1), 1);
    NEW.changed_xid := pg_current_xact_id();
    RETURN NEW;
  END IF;
  IF (NEW.status, NEW.tm_deletion_scheduled, NEW.owner_user_id)
      IS DISTINCT FROM (OLD.status, OLD.tm_deletion_scheduled, OLD.owner_user_id) THEN
    NEW.changed_xid := pg_current_xact_id();
    NEW.frozen_api_at := NULL;
    NEW.frozen_calls_at := NULL;
  END IF;
  -- A layer that records that it has applied the freeze does not change the customer.
  IF (NEW.status, NEW.tm_deletion_scheduled, NEW.name, NEW.detail, NEW.email, NEW.phone_number, NEW.address,
      NEW.webhook_method, NEW.webhook_uri, NEW.billing_account_id, NEW.owner_user_id, NEW.hold_reason)
      IS DISTINCT FROM (OLD.status, OLD.tm_deletion_scheduled, OLD.name, OLD.detail, OLD.email, OLD.phone_number,
      OLD.address, OLD.webhook_method, OLD.webhook_uri, OLD.billing_account_id, OLD.owner_user_id, OLD.hold_reason) THEN
    NEW.version := OLD.version + 1;
    NEW.tm_update := clock_timestamp();
  END IF;
  RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_settle FROM PUBLIC;
