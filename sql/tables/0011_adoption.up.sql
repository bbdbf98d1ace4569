-- formerly 9daecd973da9c251bc216f5e36189479f8ca7ca3623108587c171cabb21f416e
-- A team may have customer_customers and billing_accounts already, in this schema or in public. In this schema they are
-- adopted here: missing columns are added, old rows are converted. A table in public is marked, and a table of the same name
-- is made here; step 0022 adopts it, beside the team's programs. The former text of this step adopted it at once.
--
-- The last of the first steps: the triggers on these tables follow at once, with the functions.

-- Columns that adoption added; going down removes these and nothing else.
CREATE TABLE reclaim.adopted_columns (
  relation text NOT NULL,    -- 'public.customer_customers'
  column_name text           -- null: the table itself was made here; '': step 0022 adopts it
);

-- Finds or makes a table and gives it the columns it lacks: {name, type, default} each. Returns where it is. Dropped at
-- the end of this step.
CREATE FUNCTION reclaim.adopt_table(p_name text, p_columns text[]) RETURNS regclass
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_relation text := 'reclaim.' || p_name;
  v_column text[];
  v_type text;
BEGIN
  IF to_regclass(v_relation) IS NULL THEN
    EXECUTE format('CREATE TABLE %s (id uuid PRIMARY KEY DEFAULT gen_random_uuid())', v_relation);
    INSERT INTO reclaim.adopted_columns VALUES (v_relation, NULL);
    INSERT INTO reclaim.adopted_columns SELECT 'public.' || p_name, '' WHERE to_regclass('public.' || p_name) IS NOT NULL;
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
  RETURN v_relation::regclass;
END
$$;

DO $$
DECLARE
  v_table regclass;
  v_odd text;
  -- When a row was deleted. Some programs write a time far ahead, or the beginning of the epoch, for "not deleted"
  -- (reclaim.is_sentinel).
  v_deleted text := $gone$(CASE WHEN tm_delete BETWEEN '1970-01-02 00:00:00+00' AND now() + interval '1 year'
                                THEN tm_delete END)$gone$;
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
    UPDATE %1$s SET
      tm_delete = CASE WHEN status = 'deleted' THEN coalesce(%2$s, tm_update, now()) ELSE %2$s END,
      status = CASE WHEN %2$s IS NOT NULL THEN 'deleted' ELSE coalesce(nullif(status, ''), 'active') END,
      tm_deletion_scheduled = CASE WHEN status = 'frozen' THEN coalesce(tm_deletion_scheduled, now())
                                   WHEN coalesce(status, '') IN ('', 'active') AND %2$s IS NULL THEN NULL
                                   ELSE tm_deletion_scheduled END,
      version = greatest(coalesce(version, 1), 1), changed_xid = coalesce(changed_xid, pg_current_xact_id())
    WHERE tm_delete IS NOT NULL OR status IS NULL OR status <> 'active' OR tm_deletion_scheduled IS NOT NULL
       OR version IS NULL OR changed_xid IS NULL$back$, v_table, v_deleted);
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
  EXECUTE format('CREATE INDEX customer_by_change ON %s (changed_xid, id)', v_table);

  v_table := reclaim.adopt_table('billing_accounts', ARRAY[
    ARRAY['customer_id', 'uuid', 'NULL'], ARRAY['name', 'text', ''''''], ARRAY['status', 'text', '''active'''],
    ARRAY['hold_reasons', 'text[]', '''{}'''], ARRAY['balance_micros', 'bigint', '0'],
    ARRAY['tm_create', 'timestamptz', 'clock_timestamp()'], ARRAY['tm_update', 'timestamptz', 'NULL'],
    ARRAY['tm_delete', 'timestamptz', 'NULL']]);
  EXECUTE format($back$
    UPDATE %1$s SET
      tm_delete = CASE WHEN status = 'deleted' THEN coalesce(%2$s, tm_update, now()) ELSE %2$s END,
      status = CASE WHEN %2$s IS NOT NULL THEN 'deleted' ELSE coalesce(nullif(status, ''), 'active') END,
      hold_reasons = coalesce(hold_reasons, '{}'), balance_micros = coalesce(balance_micros, 0)
    WHERE tm_delete IS NOT NULL OR status IS NULL OR status <> 'active' OR hold_reasons IS NULL OR balance_micros IS NULL$back$, v_table, v_deleted);
  EXECUTE format('ALTER TABLE %s ALTER COLUMN status SET NOT NULL, ALTER COLUMN hold_reasons SET NOT NULL,
    ALTER COLUMN balance_micros SET NOT NULL, ALTER COLUMN customer_id DROP DEFAULT, ALTER COLUMN customer_id SET NOT NULL,
    ADD CONSTRAINT billing_status_is_known CHECK (status IN (''active'', ''frozen'', ''deleted'')),
    ADD CONSTRAINT billing_deleted_has_its_time CHECK ((status = ''deleted'') = (tm_delete IS NOT NULL))', v_table);
  EXECUTE format('CREATE INDEX billing_by_customer ON %s (customer_id)', v_table);
END
$$;

DROP FUNCTION reclaim.adopt_table(text, text[]);

-- Holds without a reason must not look like a freeze, which a recovery would lift.
UPDATE reclaim.billing_accounts SET hold_reasons = '{held}' WHERE status = 'frozen' AND hold_reasons = '{}'
  AND customer_id NOT IN (SELECT id FROM reclaim.customer_customers WHERE status = 'frozen');
-- Accounts of customers that are frozen already, and since when. The triggers that do this follow with the functions.
UPDATE reclaim.billing_accounts a SET status = 'frozen', hold_reasons = array_append(a.hold_reasons, 'account_frozen'),
    tm_update = CASE WHEN a.status = 'frozen' THEN a.tm_update ELSE clock_timestamp() END
  FROM reclaim.customer_customers c
  WHERE c.id = a.customer_id AND c.status = 'frozen' AND a.status <> 'deleted'
    AND NOT 'account_frozen' = ANY (a.hold_reasons);
INSERT INTO reclaim.billing_freezes (billing_account_id, frozen_at)
  SELECT a.id, coalesce(c.tm_deletion_scheduled, a.tm_update, clock_timestamp())
  FROM reclaim.billing_accounts a LEFT JOIN reclaim.customer_customers c ON c.id = a.customer_id AND c.status = 'frozen'
  WHERE a.status = 'frozen' AND 'account_frozen' = ANY (a.hold_reasons);

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
