-- The end of a customer: anonymised in one transaction, then erased from every service that takes part, with a receipt
-- from each. The expiry pass and an admin's deletion go the same way: reclaim.delete_customers.

-- Who keeps something of a customer: tables of this database, and services elsewhere that report what they did.
CREATE TABLE reclaim.cascade_participants (
  name text PRIMARY KEY CHECK (name ~ '^[a-z0-9][a-z0-9_.-]{0,62}$'),
  kind text NOT NULL CHECK (kind IN ('table', 'remote')),
  table_name text,                -- 'public.contacts', as format('%I.%I') writes it
  customer_column text,           -- uuid, text or varchar; an index starts with it
  soft_delete_column text,        -- gets the time of deletion; null: rows are deleted
  scrub_columns text[] NOT NULL DEFAULT '{}', -- emptied in rows that are deleted softly
  page_size integer NOT NULL DEFAULT 1000 CHECK (page_size BETWEEN 1 AND 100000),
  enabled boolean NOT NULL DEFAULT true,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- While the participant itself fails, whoever it is about: how often in a row, and when it is tried again.
  tries integer NOT NULL DEFAULT 0,
  retry_at timestamptz NOT NULL DEFAULT '-infinity',
  CHECK ((kind = 'table') = (table_name IS NOT NULL)),
  CHECK ((table_name IS NULL) = (customer_column IS NULL)),
  CHECK (soft_delete_column IS NULL OR table_name IS NOT NULL)
);

-- A customer's erasure: finished when every participant has its receipt.
CREATE TABLE reclaim.erasures (
  customer_id uuid PRIMARY KEY,
  requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  completed_at timestamptz
);
CREATE INDEX erasures_open_idx ON reclaim.erasures (requested_at) WHERE completed_at IS NULL;

CREATE TABLE reclaim.cascade_receipts (
  customer_id uuid NOT NULL,
  participant text NOT NULL,
  status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'done', 'failed')), -- failed ones are tried again
  rows bigint NOT NULL DEFAULT 0, -- counted in the transaction that deletes them
  tries integer NOT NULL DEFAULT 0,
  next_try_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  first_tried_at timestamptz,
  last_tried_at timestamptz,
  done_at timestamptz,
  error text,                     -- PostgreSQL's code, or a service's words
  PRIMARY KEY (customer_id, participant),
  CHECK ((status = 'done') = (done_at IS NOT NULL))
);
CREATE INDEX cascade_receipts_open_idx ON reclaim.cascade_receipts (participant, next_try_at, customer_id)
  WHERE status <> 'done';

-- Which reminder was promised to whom; freezing again is another schedule.
CREATE TABLE reclaim.reminders (
  customer_id uuid NOT NULL,
  scheduled timestamptz NOT NULL,
  before_ms bigint NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (customer_id, scheduled, before_ms)
);

-- Before the next try, in seconds doubled from 2 to 600, with jitter.
CREATE FUNCTION reclaim.pause_after(p_tries integer) RETURNS interval
LANGUAGE sql VOLATILE SET search_path = pg_catalog
AS $$ SELECT least(pg_catalog.power(2, least(p_tries, 20)), 600) * (0.75 + pg_catalog.random() / 2) * interval '1 second' $$;

-- Columns of Supabase Auth's users that are emptied where a row has to stay; a table may lack some.
CREATE FUNCTION reclaim.personal_columns() RETURNS TABLE (name text, cleared text)
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog
AS $$
  VALUES ('email', '''deleted_'' || id || ''@removed.invalid'''), ('encrypted_password', ''''''),
    ('deleted_at', 'coalesce(deleted_at, clock_timestamp())'), ('raw_app_meta_data', '''{}'''),
    ('raw_user_meta_data', '''{}'''), ('phone', 'NULL'), ('email_change', ''''''), ('phone_change', ''''''),
    ('confirmation_token', ''''''), ('recovery_token', ''''''), ('email_change_token_new', ''''''),
    ('email_change_token_current', ''''''), ('phone_change_token', ''''''), ('reauthentication_token', '''''')
$$;

-- Tables of Supabase Auth that have something personal of a user beside its row.
CREATE FUNCTION reclaim.personal_tables() RETURNS TABLE (name regclass, type text)
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT a.attrelid::regclass, format_type(a.atttypid, NULL)
  FROM unnest(ARRAY['identities', 'sessions', 'refresh_tokens', 'one_time_tokens', 'mfa_factors', 'flow_state']) AS known
  JOIN pg_attribute a ON a.attrelid = to_regclass('auth.' || known) AND a.attname = 'user_id' AND NOT a.attisdropped
$$;

CREATE FUNCTION reclaim.alias_users(p_users uuid[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_set text;
  v_count integer;
  v_table record;
BEGIN
  SELECT string_agg(format('%I = %s', a.attname, p.cleared), ', ') INTO v_set FROM reclaim.personal_columns() p
    JOIN pg_attribute a ON a.attrelid = to_regclass('auth.users') AND a.attname = p.name AND NOT a.attisdropped;
  EXECUTE format('UPDATE auth.users SET %s WHERE id = ANY ($1)', v_set) USING p_users;
  GET DIAGNOSTICS v_count = ROW_COUNT;
  IF v_count <> cardinality(p_users) THEN
    RAISE insufficient_privilege USING MESSAGE = 'row-level security keeps this role from changing auth.users';
  END IF;
  FOR v_table IN SELECT * FROM reclaim.personal_tables() LOOP
    IF NOT reclaim.sees_all_rows(v_table.name, 'DELETE') THEN
      RAISE insufficient_privilege USING MESSAGE = format('row-level security hides rows of %s from this role', v_table.name);
    END IF;
    EXECUTE format('DELETE FROM %s WHERE user_id = ANY ($1::%s[])', v_table.name, v_table.type) USING p_users;
  END LOOP;
END
$$;

-- Removes login identities, so that their addresses are free. A row that others still refer to, and which they will not
-- let go, is made unusable and unrecognisable instead.
CREATE FUNCTION reclaim.remove_users(p_users uuid[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_going uuid[];
  v_kept uuid[] := '{}';
  v_some uuid[];
  v_key record;
  v_user uuid;
BEGIN
  IF NOT reclaim.sees_all_rows('auth.users', 'DELETE') THEN
    RAISE insufficient_privilege USING MESSAGE = 'row-level security keeps this role from deleting from auth.users';
  END IF;
  v_going := ARRAY(SELECT one FROM unnest(p_users) AS one WHERE NOT EXISTS (
    SELECT FROM reclaim.customer_customers c WHERE c.owner_user_id = one AND c.status <> 'deleted'));
  FOR v_key IN
    SELECT k.conrelid::regclass AS name, a.attname FROM pg_constraint k
    JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
    WHERE k.contype = 'f' AND k.confrelid = to_regclass('auth.users') AND k.confdeltype IN ('a', 'r')
      AND cardinality(k.conkey) = 1 AND k.conparentid = 0
  LOOP
    BEGIN
      EXECUTE format('SELECT array_agg(DISTINCT %I) FROM %s WHERE %1$I = ANY ($1)', v_key.attname, v_key.name)
        INTO v_some USING v_going;
      v_kept := v_kept || coalesce(v_some, '{}');
    EXCEPTION WHEN insufficient_privilege THEN
      NULL; -- then the deletion finds out
    END;
  END LOOP;
  v_going := ARRAY(SELECT unnest(v_going) EXCEPT SELECT unnest(v_kept) ORDER BY 1);
  BEGIN
    DELETE FROM auth.users WHERE id = ANY (v_going);
  EXCEPTION WHEN foreign_key_violation THEN
    FOREACH v_user IN ARRAY v_going LOOP
      BEGIN
        DELETE FROM auth.users WHERE id = v_user;
      EXCEPTION WHEN foreign_key_violation THEN
        v_kept := v_kept || v_user;
      END;
    END LOOP;
  END;
  IF EXISTS (SELECT FROM auth.users WHERE id = ANY (v_going) AND NOT id = ANY (v_kept)) THEN
    RAISE insufficient_privilege USING MESSAGE = 'a trigger or rule keeps rows of auth.users from being deleted';
  END IF;
  IF cardinality(v_kept) > 0 THEN
    PERFORM reclaim.alias_users(v_kept);
  END IF;
END
$$;

-- A table that was taken over may have columns that Reclaim does not know: those of text whose names tell that they hold a
-- secret or something personal, as a list for SET; null when there are none.
CREATE FUNCTION reclaim.customer_columns_to_clear() RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT string_agg(format('%I = %L', a.attname, CASE WHEN a.attnotnull THEN '' END), ', ') FROM pg_attribute a
  WHERE a.attrelid = (SELECT CASE relkind WHEN 'v' THEN to_regclass('public.customer_customers') ELSE oid END FROM pg_class
      WHERE oid = to_regclass('reclaim.customer_customers'))
    AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND a.atttypid IN ('text'::regtype, 'varchar'::regtype)
    AND a.attname ~ '(secret|password|token|username|first_?name|last_?name|phone|mail|fax|street|city|postal|birth)'
    AND a.attname NOT IN ('email', 'phone_number')
$$;

-- Ends these customers, whose rows the caller has locked and found fit to go. p_sealed: for each the sealed address that the
-- last mail goes to (src/customers/last_mail.h), or null for none. All of it is one transaction's: the state, nothing
-- personal left, credentials and login gone, the event, the audit, and what the cascade has to do.
CREATE FUNCTION reclaim.delete_customers(p_ids uuid[], p_sealed text[], p_action text, p_actor text, p_actor_id uuid,
  p_correlation_id uuid) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_owners uuid[];
  v_count integer;
  v_others text := reclaim.customer_columns_to_clear();
BEGIN
  IF v_others IS NOT NULL THEN
    EXECUTE format('UPDATE reclaim.customer_customers SET %s WHERE id = ANY ($1)', v_others) USING p_ids;
  END IF;
  IF EXISTS (SELECT FROM reclaim.mailbox) THEN
    DELETE FROM reclaim.mailbox m USING reclaim.customer_customers c LEFT JOIN auth.users u ON u.id = c.owner_user_id
      WHERE c.id = ANY (p_ids) AND m.recipient IN (c.email, u.email);
  END IF;
  UPDATE reclaim.event_outbox SET payload = payload || jsonb_build_object('name', 'deleted_user_' || customer_id,
      'email', 'deleted_' || customer_id || '@removed.invalid', 'detail', '', 'phone_number', '', 'address', '',
      'webhook_method', '', 'webhook_uri', '')
    WHERE customer_id = ANY (p_ids);
  UPDATE reclaim.customer_log SET detail = '' WHERE customer_id = ANY (p_ids) AND detail <> '';

  WITH gone AS (
    UPDATE reclaim.customer_customers c SET name = 'deleted_user_' || c.id, detail = '',
      email = 'deleted_' || c.id || '@removed.invalid', phone_number = '', address = '', webhook_method = '',
      webhook_uri = '', hold_reason = NULL, hold_at = NULL, status = 'deleted', tm_delete = coalesce(c.tm_delete, v_now)
    WHERE c.id = ANY (p_ids)
    RETURNING c.id, c.version, c.owner_user_id, reclaim.customer_object(c)::jsonb AS object
  ), told AS (
    INSERT INTO reclaim.event_outbox (sequence, type, customer_id, payload)
      SELECT version, 'customer_deleted', id, object FROM gone
  ), logged AS (
    INSERT INTO reclaim.customer_log (customer_id, action, actor, actor_id, outcome, correlation_id)
      SELECT id, p_action, p_actor, p_actor_id, 'done', p_correlation_id FROM gone
  )
  SELECT count(*), array_agg(owner_user_id) FILTER (WHERE owner_user_id IS NOT NULL) INTO v_count, v_owners FROM gone;
  IF v_count <> cardinality(p_ids) OR NOT reclaim.sees_all_rows('reclaim.billing_accounts', 'UPDATE')
      OR NOT reclaim.sees_all_rows('reclaim.access_keys', 'UPDATE') THEN
    RAISE insufficient_privilege USING MESSAGE = 'row-level security hides customers, accounts or keys from this role';
  END IF;

  UPDATE reclaim.access_keys SET revoked_at = coalesce(revoked_at, v_now), name = ''
    WHERE customer_id = ANY (p_ids) AND (revoked_at IS NULL OR name <> '');
  UPDATE reclaim.billing_accounts SET status = 'deleted', tm_delete = coalesce(tm_delete, v_now), name = ''
    WHERE customer_id = ANY (p_ids) AND (status <> 'deleted' OR name <> '');
  DELETE FROM reclaim.reminders WHERE customer_id = ANY (p_ids);
  IF v_owners IS NOT NULL THEN
    PERFORM reclaim.remove_users(v_owners);
  END IF;

  -- A participant is either seen here or added after this has committed, and then finds these customers among the past.
  PERFORM pg_advisory_xact_lock_shared(7233173838382854247);
  INSERT INTO reclaim.cascade_receipts (customer_id, participant, next_try_at)
    SELECT one, p.name, v_now FROM unnest(p_ids) AS one CROSS JOIN reclaim.cascade_participants p WHERE p.enabled
    ON CONFLICT DO NOTHING;
  INSERT INTO reclaim.erasures (customer_id, requested_at, completed_at)
    SELECT one, v_now, CASE WHEN NOT EXISTS (SELECT FROM reclaim.cascade_participants p WHERE p.enabled) THEN v_now END
    FROM unnest(p_ids) AS one ON CONFLICT DO NOTHING;
  INSERT INTO reclaim.work_items (kind, payload)
    SELECT 'mail', jsonb_build_object('template', 'customer-deleted', 'customer_id', one, 'sealed', sealed)
    FROM unnest(p_ids, p_sealed) AS mail (one, sealed) WHERE sealed IS NOT NULL;
  RETURN v_count;
END
$$;

-- Rows of a table that are to go: all of them; or where they are only marked, those not marked yet, or not emptied.
CREATE FUNCTION reclaim.cascade_condition(p reclaim.cascade_participants) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT CASE WHEN p.soft_delete_column IS NULL THEN 'true'
    ELSE format('(%1$I IS NULL OR %1$I > now() + interval ''1 year''', p.soft_delete_column)
      || coalesce((SELECT string_agg(format(' OR %I::text NOT IN ('''', ''{}'')', one), '') FROM unnest(p.scrub_columns) AS one), '')
      || ')' END
$$;

-- As what a customer's id is compared with the table's column.
CREATE FUNCTION reclaim.cascade_type(p reclaim.cascade_participants) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT CASE atttypid WHEN 'uuid'::regtype THEN 'uuid' ELSE 'text' END FROM pg_attribute
  WHERE attrelid = to_regclass(p.table_name) AND attname = p.customer_column AND NOT attisdropped
$$;

-- How rows of a table go.
CREATE FUNCTION reclaim.cascade_command(p reclaim.cascade_participants) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog
AS $$ SELECT CASE WHEN p.soft_delete_column IS NULL THEN 'DELETE' ELSE 'UPDATE' END $$;

-- What keeps a table from taking part, as a sentence that says what to do; null: nothing.
CREATE FUNCTION reclaim.cascade_lack(p reclaim.cascade_participants) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog
AS $$
DECLARE
  v_table regclass := to_regclass(p.table_name);
  v_command text := reclaim.cascade_command(p);
  v_column pg_attribute;
  v_name text;
BEGIN
  IF v_table IS NULL THEN
    RETURN format('there is no table %s', p.table_name);
  END IF;
  IF (SELECT relkind FROM pg_class WHERE oid = v_table) NOT IN ('r', 'p') THEN
    RETURN format('%s is not a table', p.table_name);
  END IF;
  IF v_table IN (to_regclass('reclaim.customer_customers'), to_regclass('public.customer_customers'),
      to_regclass('reclaim.billing_accounts'), to_regclass('public.billing_accounts'),
      to_regclass('reclaim.event_outbox'), to_regclass('reclaim.customer_log'), to_regclass('reclaim.access_keys'),
      to_regclass('reclaim.erasures'), to_regclass('reclaim.cascade_receipts')) THEN
    RETURN format('%s is looked after by Reclaim itself', p.table_name);
  END IF;
  SELECT * INTO v_column FROM pg_attribute WHERE attrelid = v_table AND attname = p.customer_column AND NOT attisdropped;
  IF v_column IS NULL THEN
    RETURN format('%s has no column %I', p.table_name, p.customer_column);
  END IF;
  IF v_column.atttypid NOT IN ('uuid'::regtype, 'text'::regtype, 'varchar'::regtype) THEN
    RETURN format('%s.%I is of type %s; the customer''s id must be a uuid, text or varchar', p.table_name,
      p.customer_column, format_type(v_column.atttypid, NULL));
  END IF;
  IF NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = v_table AND i.indisvalid AND i.indkey[0] = v_column.attnum
      AND i.indpred IS NULL AND (SELECT amname FROM pg_class c JOIN pg_am am ON am.oid = c.relam WHERE c.oid = i.indexrelid) IN ('btree', 'hash')) THEN
    RETURN format('%s has no index that starts with %I: CREATE INDEX CONCURRENTLY ON %1$s (%2$I)', p.table_name,
      p.customer_column);
  END IF;
  IF p.soft_delete_column IS NOT NULL THEN
    IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = v_table AND attname = p.soft_delete_column
        AND NOT attisdropped AND atttypid IN ('timestamptz'::regtype, 'timestamp'::regtype)) THEN
      RETURN format('%s has no column %I that holds a time', p.table_name, p.soft_delete_column);
    END IF;
  END IF;
  FOREACH v_name IN ARRAY p.scrub_columns LOOP
    IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = v_table AND attname = v_name AND NOT attisdropped
        AND (NOT attnotnull OR atttypid IN ('text'::regtype, 'varchar'::regtype, 'json'::regtype, 'jsonb'::regtype))) THEN
      RETURN format('%s has no column %I that can be emptied', p.table_name, v_name);
    END IF;
  END LOOP;
  IF NOT reclaim.sees_all_rows(v_table, v_command) THEN
    RETURN format('row-level security hides rows of %s from this role: give it BYPASSRLS, or a policy FOR ALL USING (true)',
      p.table_name);
  END IF;
  IF NOT has_table_privilege(v_table, 'SELECT') OR NOT has_table_privilege(v_table, v_command) THEN
    RETURN format('this role may not delete from %s: GRANT SELECT, %s ON %1$s', p.table_name, v_command);
  END IF;
  RETURN NULL;
END
$$;

-- Registers a participant, or changes one. Returns what is wrong with it, null when it takes part from now on. p_past: what
-- customers left in it who were deleted before goes too.
CREATE FUNCTION reclaim.cascade_add(p_name text, p_table text, p_column text, p_soft text, p_scrub text[], p_page integer,
  p_past boolean) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_new reclaim.cascade_participants;
  v_found text;
  v_lack text;
BEGIN
  IF p_table IS NOT NULL THEN
    SELECT format('%I.%I', n.nspname, c.relname) INTO v_found FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.oid = to_regclass(CASE WHEN p_table LIKE '%.%' THEN p_table ELSE 'public.' || p_table END);
    p_table := coalesce(v_found, p_table);
  END IF;
  v_new := ROW(p_name, CASE WHEN p_table IS NULL THEN 'remote' ELSE 'table' END, p_table, p_column, p_soft,
    coalesce(p_scrub, '{}'), coalesce(p_page, 1000), true, clock_timestamp(), 0, '-infinity')::reclaim.cascade_participants;
  IF p_table IS NOT NULL THEN
    v_lack := reclaim.cascade_lack(v_new);
    IF v_lack IS NOT NULL THEN
      RETURN v_lack;
    END IF;
  END IF;
  PERFORM pg_advisory_xact_lock(7233173838382854247); -- see delete_customers
  INSERT INTO reclaim.cascade_participants VALUES (v_new.*)
    ON CONFLICT (name) DO UPDATE SET kind = EXCLUDED.kind, table_name = EXCLUDED.table_name,
      customer_column = EXCLUDED.customer_column, soft_delete_column = EXCLUDED.soft_delete_column,
      scrub_columns = EXCLUDED.scrub_columns, page_size = EXCLUDED.page_size, enabled = true, tries = 0,
      retry_at = '-infinity';
  IF p_past THEN
    INSERT INTO reclaim.cascade_receipts (customer_id, participant) SELECT customer_id, p_name FROM reclaim.erasures
      ON CONFLICT DO NOTHING;
    UPDATE reclaim.erasures e SET completed_at = NULL WHERE completed_at IS NOT NULL AND EXISTS (
      SELECT FROM reclaim.cascade_receipts r
      WHERE r.customer_id = e.customer_id AND r.participant = p_name AND r.status <> 'done');
  END IF;
  RETURN NULL;
END
$$;

-- Customers whose last receipt this may have been. Whoever writes receipts settles one after the other, until it commits:
-- of two last receipts the second sees the first, since the question is a statement of its own.
CREATE FUNCTION reclaim.erasures_settle(p_ids uuid[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(7233173838382854248);
  UPDATE reclaim.erasures e SET completed_at = clock_timestamp()
    WHERE e.customer_id = ANY (p_ids) AND e.completed_at IS NULL AND NOT EXISTS (
      SELECT FROM reclaim.cascade_receipts r WHERE r.customer_id = e.customer_id AND r.status <> 'done');
END
$$;

-- One page of a table: rows of these customers, p.page_size at most; how many went of whom, and who has some left.
CREATE FUNCTION reclaim.cascade_delete(p reclaim.cascade_participants, p_ids uuid[], OUT counted uuid[],
  OUT counts bigint[], OUT remaining uuid[])
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_table regclass := to_regclass(p.table_name);
  v_type text := reclaim.cascade_type(p);
  v_going text := reclaim.cascade_condition(p);
  v_act text := 'DELETE FROM ' || v_table;
BEGIN
  IF v_table IS NULL THEN
    RAISE undefined_table USING MESSAGE = format('there is no table %s', p.table_name);
  END IF;
  IF NOT reclaim.sees_all_rows(v_table, reclaim.cascade_command(p)) THEN
    RAISE insufficient_privilege USING MESSAGE = 'row-level security hides rows from this role';
  END IF;
  IF p.soft_delete_column IS NOT NULL THEN
    SELECT 'UPDATE ' || v_table || ' SET ' || string_agg(format('%I = %s', a.attname,
        CASE WHEN a.attname = p.soft_delete_column
          THEN format('CASE WHEN %1$I IS NULL OR %1$I > now() + interval ''1 year'' THEN clock_timestamp()%2$s ELSE %1$I END',
            a.attname, CASE WHEN a.atttypid = 'timestamp'::regtype THEN ' AT TIME ZONE ''UTC''' ELSE '' END)
          WHEN NOT a.attnotnull THEN 'NULL'
          WHEN a.atttypid IN ('json'::regtype, 'jsonb'::regtype) THEN '''{}''' ELSE '''''' END), ', ')
      INTO v_act FROM pg_attribute a
      WHERE a.attrelid = v_table AND a.attname = ANY (p.scrub_columns || p.soft_delete_column) AND NOT a.attisdropped;
  END IF;
  -- The customer's column is asked for twice: in a partitioned table the places of rows are not unique, and a row found
  -- by a place that another partition has too is then one that goes all the same.
  EXECUTE 'WITH page AS (' || v_act || format(' WHERE ctid = ANY (ARRAY(SELECT ctid FROM %1$s'
      ' WHERE %2$I = ANY ($1::%3$s[]) AND %4$s LIMIT $2)) AND %2$I = ANY ($1::%3$s[]) AND %4$s RETURNING %2$I::uuid AS customer)'
      ' SELECT array_agg(customer), array_agg(rows) FROM (SELECT customer, count(*) AS rows FROM page GROUP BY 1) AS sums',
      v_table, p.customer_column, v_type, v_going)
    INTO counted, counts USING p_ids, p.page_size;
  EXECUTE format('SELECT ARRAY(SELECT one FROM unnest($1) AS one WHERE EXISTS (SELECT FROM %s WHERE %I = one::%s AND %s))',
      v_table, p.customer_column, v_type, v_going)
    INTO remaining USING p_ids;
  IF counted IS NULL AND cardinality(remaining) > 0 THEN
    RAISE EXCEPTION USING ERRCODE = 'RCL01', MESSAGE = 'rows stay: a trigger or rule keeps them';
  END IF;
END
$$;

-- Puts a participant off that fails whoever it is about.
CREATE FUNCTION reclaim.cascade_put_off(p_participant text) RETURNS void
LANGUAGE sql SET search_path = pg_catalog
AS $$
  UPDATE reclaim.cascade_participants SET tries = tries + 1, retry_at = clock_timestamp() + reclaim.pause_after(tries + 1)
    WHERE name = p_participant
$$;

-- One page of one participant's work, for up to so many customers at once; all in the caller's transaction, so that rows
-- gone and rows counted are the same. idle: nothing is due. busy: another works on it. page: something was done. split:
-- one of these customers cannot be erased, ask for one at a time. failed: noted, and tried again later.
CREATE FUNCTION reclaim.cascade_page(p_participant text, p_customers integer, OUT outcome text, OUT customers integer,
  OUT finished integer, OUT erased bigint, OUT error text)
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_now timestamptz;
  v_p reclaim.cascade_participants;
  v_ids uuid[];
  v_page record;
  v_message text;
  v_where text;
  v_all boolean := false;
BEGIN
  customers := 0; finished := 0; erased := 0;
  IF NOT pg_try_advisory_xact_lock(hashtextextended('reclaim cascade ' || p_participant, 7)) THEN
    outcome := 'busy';
    RETURN;
  END IF;
  v_now := clock_timestamp();
  SELECT * INTO v_p FROM reclaim.cascade_participants WHERE name = p_participant AND kind = 'table' AND enabled
    AND retry_at <= v_now;
  IF FOUND THEN
    v_ids := ARRAY(SELECT customer_id FROM reclaim.cascade_receipts WHERE participant = p_participant
      AND status <> 'done' AND next_try_at <= v_now ORDER BY next_try_at, customer_id LIMIT p_customers);
  END IF;
  customers := coalesce(cardinality(v_ids), 0);
  IF customers = 0 THEN
    outcome := 'idle';
    RETURN;
  END IF;
  BEGIN
    v_page := reclaim.cascade_delete(v_p, v_ids);
  EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS v_message = MESSAGE_TEXT, v_where = CONSTRAINT_NAME;
    -- Words of PostgreSQL's own about names of things; what a trigger says may be about people, and is not kept.
    error := SQLSTATE || CASE WHEN left(SQLSTATE, 2) IN ('42', 'RC') THEN ' ' || left(v_message, 200)
                              WHEN v_where <> '' THEN ' ' || v_where ELSE '' END;
  END;
  IF error IS NOT NULL THEN
    IF left(error, 2) = '40' THEN
      outcome := 'busy';
    ELSIF left(error, 2) IN ('08', '42', '53', '54', '55', '57', '58', 'XX') THEN
      outcome := 'failed';
      v_all := true; -- whoever it is about: the participant pauses, its receipts keep their turn
      PERFORM reclaim.cascade_put_off(p_participant);
    ELSIF customers > 1 THEN
      outcome := 'split';
    ELSE
      outcome := 'failed';
    END IF;
    IF outcome = 'failed' THEN
      UPDATE reclaim.cascade_receipts r SET status = 'failed', tries = tries + 1, error = cascade_page.error,
          first_tried_at = coalesce(first_tried_at, v_now), last_tried_at = v_now,
          next_try_at = CASE WHEN v_all THEN next_try_at ELSE v_now + reclaim.pause_after(tries + 1) END
        WHERE participant = p_participant AND customer_id = ANY (v_ids);
    END IF;
    RETURN;
  END IF;

  outcome := 'page';
  finished := customers - cardinality(v_page.remaining);
  erased := coalesce((SELECT sum(one) FROM unnest(v_page.counts) AS one), 0);
  UPDATE reclaim.cascade_receipts r SET rows = r.rows + coalesce(n.rows, 0),
      status = CASE WHEN one.id = ANY (v_page.remaining) THEN 'pending' ELSE 'done' END,
      tries = r.tries + CASE WHEN one.id = ANY (v_page.remaining) THEN 0 ELSE 1 END,
      first_tried_at = coalesce(r.first_tried_at, v_now), last_tried_at = v_now, error = NULL,
      done_at = CASE WHEN one.id = ANY (v_page.remaining) THEN NULL ELSE clock_timestamp() END
    FROM unnest(v_ids) AS one (id) LEFT JOIN unnest(v_page.counted, v_page.counts) AS n (id, rows) ON n.id = one.id
    WHERE r.participant = p_participant AND r.customer_id = one.id;
  IF v_p.tries > 0 THEN
    UPDATE reclaim.cascade_participants SET tries = 0, retry_at = '-infinity' WHERE name = p_participant;
  END IF;
  PERFORM reclaim.erasures_settle(ARRAY(SELECT unnest(v_ids) EXCEPT SELECT unnest(v_page.remaining)));
END
$$;

-- A remote service's word. Repeats change nothing. missing: no such erasure, or no such remote participant in it.
CREATE FUNCTION reclaim.cascade_receive(p_customer uuid, p_participant text, p_done boolean, p_rows bigint, p_error text)
RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_status text;
BEGIN
  SELECT r.status INTO v_status FROM reclaim.cascade_receipts r JOIN reclaim.cascade_participants p ON p.name = r.participant
    WHERE r.customer_id = p_customer AND r.participant = p_participant AND p.kind = 'remote' FOR UPDATE OF r;
  IF v_status IS NULL THEN
    RETURN 'missing';
  END IF;
  IF v_status = 'done' THEN
    RETURN 'unchanged';
  END IF;
  UPDATE reclaim.cascade_receipts SET status = CASE WHEN p_done THEN 'done' ELSE 'failed' END,
      rows = CASE WHEN p_done THEN greatest(coalesce(p_rows, 0), 0) ELSE rows END, tries = tries + 1,
      first_tried_at = coalesce(first_tried_at, v_now), last_tried_at = v_now,
      done_at = CASE WHEN p_done THEN v_now END, error = CASE WHEN NOT p_done THEN left(coalesce(p_error, 'failed'), 200) END
    WHERE customer_id = p_customer AND participant = p_participant;
  PERFORM reclaim.erasures_settle(ARRAY[p_customer]);
  RETURN CASE WHEN p_done THEN 'done' ELSE 'failed' END;
END
$$;

-- Has what is unfinished tried again at once: of one customer or of all, of one participant or of all. Remote services are
-- told again. Who began to take part after a customer was deleted gets its part of it now.
CREATE FUNCTION reclaim.cascade_redrive(p_customer uuid, p_participant text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_count bigint;
BEGIN
  IF p_customer IS NOT NULL THEN
    INSERT INTO reclaim.cascade_receipts (customer_id, participant)
      SELECT e.customer_id, p.name FROM reclaim.erasures e CROSS JOIN reclaim.cascade_participants p
      WHERE e.customer_id = p_customer AND p.enabled AND (p_participant IS NULL OR p.name = p_participant)
      ON CONFLICT DO NOTHING;
    UPDATE reclaim.erasures SET completed_at = NULL WHERE customer_id = p_customer AND completed_at IS NOT NULL
      AND EXISTS (SELECT FROM reclaim.cascade_receipts r WHERE r.customer_id = p_customer AND r.status <> 'done');
  END IF;
  UPDATE reclaim.cascade_participants SET tries = 0, retry_at = '-infinity'
    WHERE tries > 0 AND (p_participant IS NULL OR name = p_participant);
  UPDATE reclaim.event_outbox o SET published_at = NULL
    WHERE o.type = 'customer_deleted' AND o.published_at IS NOT NULL AND (p_customer IS NULL OR o.customer_id = p_customer)
      AND o.customer_id IN (SELECT r.customer_id FROM reclaim.cascade_receipts r
        JOIN reclaim.cascade_participants p ON p.name = r.participant
        WHERE r.status <> 'done' AND p.kind = 'remote' AND (p_participant IS NULL OR p.name = p_participant));
  UPDATE reclaim.cascade_receipts SET next_try_at = clock_timestamp()
    WHERE status <> 'done' AND (p_customer IS NULL OR customer_id = p_customer)
      AND (p_participant IS NULL OR participant = p_participant);
  GET DIAGNOSTICS v_count = ROW_COUNT;
  PERFORM pg_notify('reclaim_events', '');
  RETURN v_count;
END
$$;

-- Promises the mails of one reminder to frozen customers whose deletion is p_before_ms away or less, but more than
-- p_until_ms: whoever is so late that the next one is due gets that one alone. Returns how many.
CREATE FUNCTION reclaim.remind(p_grace_ms bigint, p_before_ms bigint, p_until_ms bigint, p_limit integer) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_newest timestamptz := clock_timestamp() - (p_grace_ms - p_before_ms) * interval '1 millisecond';
  v_oldest timestamptz := clock_timestamp() - (p_grace_ms - p_until_ms) * interval '1 millisecond';
  v_count integer;
BEGIN
  WITH due AS (
    SELECT c.id, c.tm_deletion_scheduled AS scheduled FROM reclaim.customer_customers c
    WHERE c.status = 'frozen' AND c.tm_deletion_scheduled <= v_newest AND c.tm_deletion_scheduled > v_oldest
      AND c.hold_at IS NULL AND NOT EXISTS (SELECT FROM reclaim.reminders r WHERE r.customer_id = c.id
        AND r.scheduled = c.tm_deletion_scheduled AND r.before_ms = p_before_ms)
    ORDER BY c.tm_deletion_scheduled, c.id LIMIT p_limit
  ), told AS (
    INSERT INTO reclaim.reminders (customer_id, scheduled, before_ms) SELECT id, scheduled, p_before_ms FROM due
      ON CONFLICT DO NOTHING RETURNING customer_id, scheduled
  ), mails AS (
    INSERT INTO reclaim.work_items (kind, payload)
      SELECT 'mail', jsonb_build_object('template', 'customer-reminder', 'customer_id', customer_id,
        'scheduled', reclaim.rfc3339(scheduled)) FROM told
  )
  SELECT count(*) INTO v_count FROM told;
  RETURN v_count;
END
$$;

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA reclaim FROM PUBLIC;
