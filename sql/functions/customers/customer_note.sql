-- Notes a change of state, for customer_follow after the statement. A row that is inserted as deleted is history, and erases
-- nothing. Of a row that is gone it keeps what the consequences need,
-- nothing personal.
CREATE OR REPLACE FUNCTION reclaim.customer_note() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    INSERT INTO reclaim.customer_pending (customer_id, change, version, removed, owner_user_id, object, layers)
      VALUES (OLD.id, 'delete', OLD.version + 1, true, OLD.owner_user_id,
        reclaim.customer_object_deleted(OLD.id, OLD.billing_account_id, OLD.tm_deletion_scheduled, OLD.tm_create, clock_timestamp(),
          reclaim.now()),
        CASE WHEN OLD.status = 'frozen' THEN reclaim.freeze_layers(OLD.tm_deletion_scheduled, OLD.frozen_api_at, OLD.frozen_calls_at,
          OLD.frozen_billing_at) END);
  ELSE
    INSERT INTO reclaim.customer_pending (customer_id, change, version, removed, layers)
      VALUES (NEW.id, CASE WHEN TG_OP = 'UPDATE' AND OLD.status = NEW.status THEN 'moved' WHEN NEW.status = 'frozen' THEN 'freeze'
          WHEN TG_OP = 'INSERT' AND NEW.status = 'deleted' THEN 'import' WHEN TG_OP = 'INSERT' THEN 'insert'
          WHEN NEW.status = 'deleted' THEN 'delete' ELSE 'recover' END, NEW.version, false,
        CASE WHEN TG_OP = 'UPDATE' AND OLD.status = 'frozen' AND NEW.status <> 'frozen' THEN reclaim.freeze_layers(OLD.tm_deletion_scheduled,
          OLD.frozen_api_at, OLD.frozen_calls_at, OLD.frozen_billing_at) END);
  END IF;
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_note FROM PUBLIC;
