-- Customers and what hangs on them: billing accounts, API keys, events to be told, and what was done to whom.
--
-- A team may have customer_customers and billing_accounts already, in this schema or in public. They are taken over where
-- they are: missing columns are added, old rows are made to say what they meant, and from then on a table in public is
-- seen in this schema through a view, so that every statement can name it the same way.

-- What a table lacked when it was taken over: going down takes that away again, and nothing else.
CREATE TABLE reclaim.adopted_columns (
  relation text NOT NULL,    -- 'public.customer_customers'
  column_name text           -- null: the table itself was made here
);

-- Finds or makes a table and gives it the columns it lacks: {name, type, default} each. Returns where it is.
CREATE FUNCTION reclaim.adopt_table(p_name text, p_columns text[]) RETURNS regclass
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_home text := CASE WHEN to_regclass('reclaim.' || p_name) IS NULL AND to_regclass('public.' || p_name) IS NOT NULL
                      THEN 'public' ELSE 'reclaim' END;
  v_relation text := v_home || '.' || p_name;
  v_column text[];
  v_type text;
BEGIN
  IF to_regclass(v_relation) IS NULL THEN
    EXECUTE format('CREATE TABLE %s (id uuid PRIMARY KEY DEFAULT gen_random_uuid())', v_relation);
    INSERT INTO reclaim.adopted_columns VALUES (v_relation, NULL);
  END IF;
  IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = v_relation::regclass AND attname = 'id' AND atthasdef) THEN
    EXECUTE format('ALTER TABLE %s ALTER COLUMN id SET DEFAULT gen_random_uuid()', v_relation);
  END IF;
  FOREACH v_column SLICE 1 IN ARRAY p_columns LOOP
    SELECT format_type(atttypid, NULL) INTO v_type FROM pg_attribute
      WHERE attrelid = v_relation::regclass AND attname = v_column[1] AND NOT attisdropped;
    IF v_type IS NULL THEN
      EXECUTE format('ALTER TABLE %s ADD COLUMN %I %s DEFAULT %s', v_relation, v_column[1], v_column[2], v_column[3]);
      INSERT INTO reclaim.adopted_columns VALUES (v_relation, v_column[1]);
    ELSE
      -- Times without a zone were written by programs that meant UTC.
      IF v_column[2] = 'timestamptz' AND v_type = 'timestamp without time zone' THEN
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT, ALTER COLUMN %2$I TYPE timestamptz USING %2$I AT TIME ZONE ''UTC''',
          v_relation, v_column[1]);
      ELSIF v_column[2] IN ('timestamptz', 'uuid', 'bigint') AND v_type <> format_type(to_regtype(v_column[2]), NULL) THEN
        RAISE EXCEPTION '% has a column % of type %, Reclaim needs %', v_relation, v_column[1], v_type, v_column[2]
          USING HINT = 'Change the column''s type, then migrate again.';
      END IF;
      EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', v_relation, v_column[1], v_column[3]);
      IF v_column[3] = 'NULL' THEN
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I DROP NOT NULL', v_relation, v_column[1]);
      END IF;
    END IF;
  END LOOP;
  IF v_home = 'public' THEN
    EXECUTE format('CREATE VIEW reclaim.%I AS SELECT * FROM %s', p_name, v_relation);
  END IF;
  RETURN v_relation::regclass;
END
$$;

-- "Not deleted" as old programs wrote it: a date that nobody can mean.
CREATE FUNCTION reclaim.is_sentinel(p_time timestamptz) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog
AS $$ SELECT p_time > now() + interval '1 year' OR p_time < '1970-01-02 00:00:00+00' $$;

-- Status and tm_delete go together whoever writes them; every change grows the version, and a change of state leaves the
-- transaction that made it, for those who read only what is new (src/gate/frozen_customers.c).
CREATE FUNCTION reclaim.customer_settle() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
BEGIN
  NEW.status := coalesce(nullif(NEW.status, ''), 'active');
  IF reclaim.is_sentinel(NEW.tm_delete) THEN
    NEW.tm_delete := NULL;
  END IF;
  IF NEW.tm_delete IS NOT NULL THEN
    NEW.status := 'deleted';
  ELSIF NEW.status = 'deleted' THEN
    NEW.tm_delete := clock_timestamp();
  END IF;
  IF NEW.status = 'active' THEN
    NEW.tm_deletion_scheduled := NULL;
  ELSIF NEW.status = 'frozen' THEN
    NEW.tm_deletion_scheduled := coalesce(NEW.tm_deletion_scheduled, clock_timestamp());
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
  -- When a layer reports that it has the freeze, the customer itself has not changed.
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

-- A customer's owner is kept from being deleted while the customer is written, as a foreign key would keep it: the
-- clean-up, which locks the user before it looks for customers, waits for this transaction or makes it fail. Runs as its
-- owner, since programs that write customers may have no right to auth.users.
CREATE FUNCTION reclaim.customer_keep_owner() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog
AS $$
BEGIN
  IF NOT reclaim.may_lock_users() OR NOT EXISTS (SELECT FROM auth.users WHERE id = NEW.owner_user_id) THEN
    RETURN NEW; -- an owner that Reclaim does not know
  END IF;
  PERFORM FROM auth.users WHERE id = NEW.owner_user_id FOR KEY SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the user % was deleted while its customer was being written', NEW.owner_user_id
      USING ERRCODE = 'foreign_key_violation';
  END IF;
  RETURN NEW;
END
$$;

-- Whether the owner of these functions may do that; doctor asks too.
CREATE FUNCTION reclaim.may_lock_users() RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog
AS $$
BEGIN
  RETURN coalesce(has_schema_privilege(to_regnamespace('auth'), 'USAGE')
    AND has_column_privilege(to_regclass('auth.users'), 'id', 'SELECT')
    AND has_any_column_privilege(to_regclass('auth.users'), 'UPDATE')
    AND reclaim.sees_all_rows(to_regclass('auth.users'), 'UPDATE'), false);
END
$$;

CREATE FUNCTION reclaim.notify_channel() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$ BEGIN PERFORM pg_notify(TG_ARGV[0], ''); RETURN NULL; END $$;

CREATE FUNCTION reclaim.billing_settle() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
BEGIN
  NEW.status := coalesce(nullif(NEW.status, ''), 'active');
  IF reclaim.is_sentinel(NEW.tm_delete) THEN
    NEW.tm_delete := NULL;
  END IF;
  IF NEW.tm_delete IS NOT NULL THEN
    NEW.status := 'deleted';
  ELSIF NEW.status = 'deleted' THEN
    NEW.tm_delete := clock_timestamp();
  END IF;
  IF TG_OP = 'UPDATE' AND NEW.status IS DISTINCT FROM OLD.status THEN
    NEW.tm_update := clock_timestamp();
  END IF;
  RETURN NEW;
END
$$;

DO $$
DECLARE
  v_table regclass;
  v_odd text;
BEGIN
  v_table := reclaim.adopt_table('customer_customers', ARRAY[
    ARRAY['name', 'text', ''''''], ARRAY['detail', 'text', ''''''], ARRAY['email', 'text', ''''''],
    ARRAY['phone_number', 'text', ''''''], ARRAY['address', 'text', ''''''], ARRAY['webhook_method', 'text', ''''''],
    ARRAY['webhook_uri', 'text', ''''''], ARRAY['billing_account_id', 'uuid', 'NULL'],
    ARRAY['status', 'text', '''active'''], ARRAY['tm_deletion_scheduled', 'timestamptz', 'NULL'],
    ARRAY['tm_create', 'timestamptz', 'clock_timestamp()'], ARRAY['tm_update', 'timestamptz', 'NULL'],
    ARRAY['tm_delete', 'timestamptz', 'NULL'], ARRAY['owner_user_id', 'uuid', 'NULL'], ARRAY['version', 'bigint', '1'],
    ARRAY['frozen_api_at', 'timestamptz', 'NULL'], ARRAY['frozen_calls_at', 'timestamptz', 'NULL'],
    ARRAY['frozen_billing_at', 'timestamptz', 'NULL'], ARRAY['hold_reason', 'text', 'NULL'],
    ARRAY['hold_at', 'timestamptz', 'NULL'], ARRAY['changed_xid', 'xid8', 'pg_current_xact_id()']]);
  EXECUTE format($back$
    UPDATE %s SET
      tm_delete = CASE WHEN reclaim.is_sentinel(tm_delete) THEN NULL
                       WHEN tm_delete IS NULL AND status = 'deleted' THEN coalesce(tm_update, now()) ELSE tm_delete END,
      status = CASE WHEN tm_delete IS NOT NULL AND NOT reclaim.is_sentinel(tm_delete) THEN 'deleted'
                    ELSE coalesce(nullif(status, ''), 'active') END,
      tm_deletion_scheduled = CASE WHEN status = 'frozen' THEN coalesce(tm_deletion_scheduled, now())
                                   WHEN coalesce(status, '') IN ('', 'active') AND (tm_delete IS NULL OR reclaim.is_sentinel(tm_delete)) THEN NULL
                                   ELSE tm_deletion_scheduled END,
      version = greatest(coalesce(version, 1), 1), changed_xid = coalesce(changed_xid, pg_current_xact_id())
    WHERE tm_delete IS NOT NULL OR status IS NULL OR status <> 'active' OR tm_deletion_scheduled IS NOT NULL
       OR version IS NULL OR changed_xid IS NULL$back$, v_table);
  EXECUTE format('SELECT min(status) FROM %s WHERE status NOT IN (''active'', ''frozen'', ''deleted'')', v_table) INTO v_odd;
  IF v_odd IS NOT NULL THEN
    RAISE EXCEPTION '% has rows of status "%"', v_table, v_odd
      USING HINT = 'Reclaim knows active, frozen and deleted. Give these rows one of them, then migrate again.';
  END IF;
  EXECUTE format('ALTER TABLE %s ALTER COLUMN status SET NOT NULL, ALTER COLUMN version SET NOT NULL,
    ADD CONSTRAINT customer_status_is_known CHECK (status IN (''active'', ''frozen'', ''deleted'')),
    ADD CONSTRAINT customer_deleted_has_its_time CHECK ((status = ''deleted'') = (tm_delete IS NOT NULL)),
    ADD CONSTRAINT customer_frozen_has_its_time CHECK (status = ''deleted'' OR (status = ''frozen'') = (tm_deletion_scheduled IS NOT NULL))',
    v_table);
  EXECUTE format('CREATE UNIQUE INDEX customer_one_live_per_owner ON %s (owner_user_id) WHERE status <> ''deleted''', v_table);
  EXECUTE format('CREATE INDEX customer_by_owner ON %s (owner_user_id, tm_create) WHERE owner_user_id IS NOT NULL', v_table);
  EXECUTE format('CREATE INDEX customer_by_status ON %s (status, id)', v_table);
  EXECUTE format('CREATE INDEX customer_by_schedule ON %s (tm_deletion_scheduled, id) WHERE status = ''frozen''', v_table);
  EXECUTE format('CREATE INDEX customer_by_layer ON %s (changed_xid) WHERE status = ''frozen'' AND frozen_api_at IS NULL', v_table);
  EXECUTE format('CREATE INDEX customer_by_change ON %s (changed_xid)', v_table);
  EXECUTE format('CREATE TRIGGER customer_settle BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION reclaim.customer_settle()', v_table);
  EXECUTE format('CREATE TRIGGER customer_keep_owner BEFORE INSERT ON %s FOR EACH ROW WHEN (NEW.owner_user_id IS NOT NULL)
    EXECUTE FUNCTION reclaim.customer_keep_owner()', v_table);
  EXECUTE format('CREATE TRIGGER customer_keep_new_owner BEFORE UPDATE OF owner_user_id ON %s FOR EACH ROW
    WHEN (NEW.owner_user_id IS DISTINCT FROM OLD.owner_user_id AND NEW.owner_user_id IS NOT NULL)
    EXECUTE FUNCTION reclaim.customer_keep_owner()', v_table);
  EXECUTE format('CREATE TRIGGER customer_notify AFTER INSERT OR UPDATE OF status, tm_delete ON %s FOR EACH STATEMENT EXECUTE FUNCTION reclaim.notify_channel(''reclaim_customers'')', v_table);

  v_table := reclaim.adopt_table('billing_accounts', ARRAY[
    ARRAY['customer_id', 'uuid', 'NULL'], ARRAY['name', 'text', ''''''], ARRAY['status', 'text', '''active'''],
    ARRAY['hold_reasons', 'text[]', '''{}'''], ARRAY['balance_micros', 'bigint', '0'],
    ARRAY['tm_create', 'timestamptz', 'clock_timestamp()'], ARRAY['tm_update', 'timestamptz', 'NULL'],
    ARRAY['tm_delete', 'timestamptz', 'NULL']]);
  EXECUTE format($back$
    UPDATE %s SET
      tm_delete = CASE WHEN reclaim.is_sentinel(tm_delete) THEN NULL
                       WHEN tm_delete IS NULL AND status = 'deleted' THEN coalesce(tm_update, now()) ELSE tm_delete END,
      status = CASE WHEN tm_delete IS NOT NULL AND NOT reclaim.is_sentinel(tm_delete) THEN 'deleted'
                    ELSE coalesce(nullif(status, ''), 'active') END,
      hold_reasons = coalesce(hold_reasons, '{}'), balance_micros = coalesce(balance_micros, 0)
    WHERE tm_delete IS NOT NULL OR status IS NULL OR status <> 'active' OR hold_reasons IS NULL OR balance_micros IS NULL$back$, v_table);
  EXECUTE format('ALTER TABLE %s ALTER COLUMN status SET NOT NULL, ALTER COLUMN hold_reasons SET NOT NULL,
    ALTER COLUMN balance_micros SET NOT NULL, ALTER COLUMN customer_id DROP DEFAULT, ALTER COLUMN customer_id SET NOT NULL,
    ADD CONSTRAINT billing_status_is_known CHECK (status IN (''active'', ''frozen'', ''deleted'')),
    ADD CONSTRAINT billing_deleted_has_its_time CHECK ((status = ''deleted'') = (tm_delete IS NOT NULL))', v_table);
  EXECUTE format('CREATE INDEX billing_by_customer ON %s (customer_id)', v_table);
  EXECUTE format('CREATE TRIGGER billing_settle BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION reclaim.billing_settle()', v_table);
END
$$;

-- Times as the API writes them.
CREATE FUNCTION reclaim.rfc3339(p_time timestamptz) RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE
AS $$ SELECT pg_catalog.to_char(p_time AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') $$;

-- The customer object of the API and of events.
CREATE FUNCTION reclaim.customer_object(c reclaim.customer_customers) RETURNS json
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog
AS $$
  SELECT CASE WHEN c.status = 'frozen'
    THEN pg_catalog."left"(plain::text, -1) || ',"freeze":' || pg_catalog.row_to_json(layers)::text || '}'
    ELSE plain::text END::json
  FROM (SELECT pg_catalog.row_to_json(fields) AS plain FROM (
      SELECT c.id, coalesce(c.name, '') AS name, coalesce(c.detail, '') AS detail, coalesce(c.email, '') AS email,
        coalesce(c.phone_number, '') AS phone_number, coalesce(c.address, '') AS address,
        coalesce(c.webhook_method, '') AS webhook_method, coalesce(c.webhook_uri, '') AS webhook_uri,
        c.billing_account_id, c.status, reclaim.rfc3339(c.tm_deletion_scheduled) AS tm_deletion_scheduled,
        reclaim.rfc3339(c.tm_create) AS tm_create, reclaim.rfc3339(c.tm_update) AS tm_update,
        reclaim.rfc3339(c.tm_delete) AS tm_delete) AS fields) AS object,
    (SELECT reclaim.rfc3339(c.frozen_api_at) AS api, reclaim.rfc3339(c.frozen_calls_at) AS calls,
        reclaim.rfc3339(c.frozen_billing_at) AS billing) AS layers
$$;

-- For row-level security policies. Runs as its owner, so that whoever asks needs no right to the table.
CREATE FUNCTION reclaim.customer_is_active(p_id uuid) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE SET search_path = pg_catalog
AS $$ SELECT EXISTS (SELECT FROM reclaim.customer_customers WHERE id = p_id AND status = 'active') $$;

-- Whether a user has a verified second factor; null when that cannot be read, so that nobody is signed in on a guess. The
-- table is Supabase Auth's and may be missing.
CREATE FUNCTION reclaim.has_second_factor(p_user uuid) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog
AS $$
DECLARE
  v_factors regclass := to_regclass('auth.mfa_factors');
BEGIN
  IF v_factors IS NULL THEN
    RETURN false;
  END IF;
  IF NOT reclaim.sees_all_rows(v_factors, 'SELECT') OR NOT has_column_privilege(v_factors, 'user_id', 'SELECT')
      OR NOT has_column_privilege(v_factors, 'status', 'SELECT') THEN
    RETURN NULL;
  END IF;
  RETURN EXISTS (SELECT FROM auth.mfa_factors WHERE user_id = p_user AND status::text = 'verified');
END
$$;

CREATE TABLE reclaim.access_keys (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  customer_id uuid NOT NULL,
  key_hash text NOT NULL UNIQUE, -- keyed; the key itself is shown once and stored nowhere
  prefix text NOT NULL DEFAULT '',
  name text NOT NULL DEFAULT '',
  created_at timestamptz NOT NULL DEFAULT now(),
  last_used_at timestamptz,
  revoked_at timestamptz,
  changed_xid xid8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX access_keys_customer_id_idx ON reclaim.access_keys (customer_id);
CREATE INDEX access_keys_revoked_idx ON reclaim.access_keys (changed_xid) WHERE revoked_at IS NOT NULL;

CREATE FUNCTION reclaim.access_key_settle() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$ BEGIN NEW.changed_xid := pg_current_xact_id(); RETURN NEW; END $$;
CREATE TRIGGER access_key_settle BEFORE UPDATE OF revoked_at ON reclaim.access_keys
  FOR EACH ROW EXECUTE FUNCTION reclaim.access_key_settle();
CREATE TRIGGER access_key_notify AFTER UPDATE OF revoked_at ON reclaim.access_keys
  FOR EACH STATEMENT EXECUTE FUNCTION reclaim.notify_channel('reclaim_customers');

-- Written by the transaction that changes a customer. Changes of one customer wait for each other at its row, so that
-- in the order of position each customer's sequence grows.
CREATE TABLE reclaim.event_outbox (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  position bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  sequence bigint NOT NULL, -- the customer's version
  type text NOT NULL CHECK (type IN ('customer_frozen', 'customer_recovered', 'customer_deleted')),
  customer_id uuid NOT NULL,
  payload jsonb NOT NULL, -- the customer object
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  published_at timestamptz,
  UNIQUE (customer_id, sequence)
);
CREATE INDEX event_outbox_unpublished ON reclaim.event_outbox (position) WHERE published_at IS NULL;
CREATE TRIGGER event_outbox_notify AFTER INSERT ON reclaim.event_outbox
  FOR EACH STATEMENT EXECUTE FUNCTION reclaim.notify_channel('reclaim_events');

-- What was done to a customer, by whom; nothing personal.
CREATE TABLE reclaim.customer_log (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  customer_id uuid,
  action text NOT NULL,      -- freeze, recover, delete, hold, unhold, expire, login, …
  actor text NOT NULL,       -- owner, key, admin, operator (at the command line), system
  actor_id uuid,             -- a user's or a key's id
  outcome text NOT NULL,     -- done, unchanged, or the error's name
  detail text NOT NULL DEFAULT '',
  correlation_id uuid,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX customer_log_customer_id_idx ON reclaim.customer_log (customer_id, created_at);
CREATE INDEX customer_log_correlation_id_idx ON reclaim.customer_log (correlation_id);
CREATE INDEX customer_log_created_at_idx ON reclaim.customer_log (created_at);

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA reclaim FROM PUBLIC;
