-- Clears the numbers of a call that is marked deleted, and, once it is over, its dialog and what was said of its end. The
-- dialog of a live call stays: it must still be ended at the switch.
CREATE OR REPLACE FUNCTION reclaim.call_forget() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
BEGIN
  IF NEW.tm_delete IS NOT NULL THEN
    NEW.source := '';
    NEW.destination := '';
    IF NEW.status = 'hangup' THEN
      NEW.sip_call_id := NULL;
      NEW.from_tag := NULL;
      NEW.to_tag := NULL;
      NEW.cseq := NULL;
      IF NEW.hangup_reason NOT IN ('normal', 'account_frozen', 'account_deleted') THEN
        NEW.hangup_reason := '';
      END IF;
    END IF;
  END IF;
  RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION reclaim.call_forget FROM PUBLIC;
