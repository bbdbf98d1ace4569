-- Records the transaction that revokes a key, by which src/gate/frozen_customers.c finds it.
CREATE OR REPLACE FUNCTION reclaim.access_key_settle() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$ BEGIN NEW.changed_xid := pg_current_xact_id(); RETURN NEW; END $$;
REVOKE ALL ON FUNCTION reclaim.access_key_settle FROM PUBLIC;
