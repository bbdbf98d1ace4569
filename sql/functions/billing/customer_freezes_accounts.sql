-- A charge reads the clock after it has locked its account, so a freeze reads the clock only when it holds the locks of all
-- the customer's accounts: otherwise a charge between clock and lock would lie inside the freeze. By its name it fires
-- before customer_settle.
CREATE OR REPLACE FUNCTION reclaim.customer_freezes_accounts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now timestamptz;
  v_began timestamptz; -- this transaction, in the installation's time
BEGIN
  PERFORM FROM reclaim.billing_accounts a WHERE a.customer_id = NEW.id ORDER BY a.id FOR NO KEY UPDATE;
  v_now := reclaim.now();
  v_began := v_now - (clock_timestamp() - transaction_timestamp());
  -- A time of this transaction means now; an older one was meant.
  IF NEW.tm_deletion_scheduled IS NULL OR NEW.tm_deletion_scheduled >= v_began THEN
    NEW.tm_deletion_scheduled := v_now;
  END IF;
  NEW.frozen_billing_at := v_now;
  RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION reclaim.customer_freezes_accounts FROM PUBLIC;
