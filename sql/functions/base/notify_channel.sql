-- Notifies the channel that the trigger names as its argument.
CREATE OR REPLACE FUNCTION reclaim.notify_channel() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$ BEGIN PERFORM pg_notify(TG_ARGV[0], ''); RETURN NULL; END $$;
REVOKE ALL ON FUNCTION reclaim.notify_channel FROM PUBLIC;
