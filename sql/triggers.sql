-- Which trigger calls which function. PostgreSQL fires triggers of the same kind in the order of their names, and so they
-- stand here. Applied after the functions, whenever the set of them changed; a trigger that is taken out of this file
-- needs a DROP TRIGGER IF EXISTS in its place.

CREATE OR REPLACE TRIGGER billing_subscription_settle BEFORE INSERT ON reclaim.billing_subscriptions
  FOR EACH ROW EXECUTE FUNCTION reclaim.billing_subscription_settle();

CREATE OR REPLACE TRIGGER access_key_changed AFTER UPDATE ON reclaim.access_keys FOR EACH ROW
  WHEN ((OLD.id, OLD.customer_id, OLD.scope, OLD.expires_at, OLD.key_hash)
    IS DISTINCT FROM (NEW.id, NEW.customer_id, NEW.scope, NEW.expires_at, NEW.key_hash))
  EXECUTE FUNCTION reclaim.access_key_ended();
CREATE OR REPLACE TRIGGER access_key_gone AFTER DELETE ON reclaim.access_keys
  FOR EACH ROW EXECUTE FUNCTION reclaim.access_key_ended();
CREATE OR REPLACE TRIGGER access_key_gone_all BEFORE TRUNCATE ON reclaim.access_keys
  FOR EACH STATEMENT EXECUTE FUNCTION reclaim.access_key_ended();
CREATE OR REPLACE TRIGGER access_key_notify AFTER UPDATE OF revoked_at ON reclaim.access_keys
  FOR EACH STATEMENT EXECUTE FUNCTION reclaim.notify_channel('reclaim_customers');
CREATE OR REPLACE TRIGGER access_key_settle BEFORE UPDATE OF revoked_at ON reclaim.access_keys
  FOR EACH ROW EXECUTE FUNCTION reclaim.access_key_settle();

CREATE OR REPLACE TRIGGER gate_ended_notify AFTER INSERT ON reclaim.gate_ended
  FOR EACH STATEMENT EXECUTE FUNCTION reclaim.notify_channel('reclaim_customers');

-- customer_members, before each row, then after the statement; before a TRUNCATE, which has no rows to give.
CREATE OR REPLACE TRIGGER member_keep BEFORE INSERT OR UPDATE OF customer_id, user_id ON reclaim.customer_members
  FOR EACH ROW EXECUTE FUNCTION reclaim.member_keep();
CREATE OR REPLACE TRIGGER members_announce_added AFTER INSERT ON reclaim.customer_members
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION reclaim.members_announce();
CREATE OR REPLACE TRIGGER members_announce_changed AFTER UPDATE ON reclaim.customer_members
  REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION reclaim.members_announce();
CREATE OR REPLACE TRIGGER members_announce_removed AFTER DELETE ON reclaim.customer_members
  REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION reclaim.members_announce();
CREATE OR REPLACE TRIGGER members_announce_truncated BEFORE TRUNCATE ON reclaim.customer_members
  FOR EACH STATEMENT EXECUTE FUNCTION reclaim.members_announce();
CREATE OR REPLACE TRIGGER session_changes AFTER UPDATE ON reclaim.sessions
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION reclaim.session_end();
CREATE OR REPLACE TRIGGER session_ends AFTER DELETE ON reclaim.sessions
  FOR EACH ROW WHEN (OLD.ended_at IS NULL AND OLD.expires_at > clock_timestamp() - interval '1 hour')
  EXECUTE FUNCTION reclaim.session_end();
CREATE OR REPLACE TRIGGER sessions_end BEFORE TRUNCATE ON reclaim.sessions
  FOR EACH STATEMENT EXECUTE FUNCTION reclaim.session_end();

CREATE OR REPLACE TRIGGER event_outbox_notify AFTER INSERT ON reclaim.event_outbox
  FOR EACH STATEMENT EXECUTE FUNCTION reclaim.notify_channel('reclaim_events');

CREATE OR REPLACE TRIGGER call_forget BEFORE UPDATE OF tm_delete, status, hangup_reason ON reclaim.call_calls
  FOR EACH ROW EXECUTE FUNCTION reclaim.call_forget();

CREATE OR REPLACE TRIGGER keep_event BEFORE UPDATE ON reclaim.auth_cleanup_events
  FOR EACH ROW EXECUTE FUNCTION reclaim.keep_event();

-- The audit tables have their first partitions before anything is written; the leader makes the next in time.
SELECT reclaim.make_audit_partitions();

-- Those of customer_customers and billing_accounts are on the table itself, in public if it was taken over there. They come last:
-- others wait for these tables from here to the end of the transaction.
DO $$
DECLARE
  v_customers regclass := reclaim.table_home('customer_customers');
  v_accounts regclass := reclaim.table_home('billing_accounts');
  v_adopting regclass;
BEGIN
  -- customer_customers, before each row: the accounts are locked before the freeze gets its time.
  EXECUTE format('CREATE OR REPLACE TRIGGER customer_freezes_accounts BEFORE UPDATE OF status ON %s FOR EACH ROW
    WHEN (NEW.status = ''frozen'' AND OLD.status IS DISTINCT FROM ''frozen'')
    EXECUTE FUNCTION reclaim.customer_freezes_accounts()', v_customers);
  EXECUTE format('CREATE OR REPLACE TRIGGER customer_keep BEFORE DELETE ON %s FOR EACH ROW
    EXECUTE FUNCTION reclaim.customer_keep()', v_customers);
  EXECUTE format('CREATE OR REPLACE TRIGGER customer_keep_all BEFORE TRUNCATE ON %s FOR EACH STATEMENT
    EXECUTE FUNCTION reclaim.customer_keep()', v_customers);
  EXECUTE format('CREATE OR REPLACE TRIGGER customer_keep_new_owner BEFORE UPDATE OF owner_user_id ON %s FOR EACH ROW
    WHEN (NEW.owner_user_id IS DISTINCT FROM OLD.owner_user_id AND NEW.owner_user_id IS NOT NULL)
    EXECUTE FUNCTION reclaim.customer_keep_owner()', v_customers);
  EXECUTE format('CREATE OR REPLACE TRIGGER customer_keep_owner BEFORE INSERT ON %s FOR EACH ROW
    WHEN (NEW.owner_user_id IS NOT NULL) EXECUTE FUNCTION reclaim.customer_keep_owner()', v_customers);
  EXECUTE format('CREATE OR REPLACE TRIGGER customer_settle BEFORE UPDATE ON %s FOR EACH ROW
    EXECUTE FUNCTION reclaim.customer_settle()', v_customers);
  EXECUTE format('CREATE OR REPLACE TRIGGER customer_settle_new BEFORE INSERT ON %s FOR EACH ROW
    EXECUTE FUNCTION reclaim.customer_settle_new()', v_customers);
  -- After each row: a note of the change.
  EXECUTE format('CREATE OR REPLACE TRIGGER customer_note AFTER UPDATE ON %s FOR EACH ROW
    WHEN (OLD.status IS DISTINCT FROM NEW.status OR (OLD.hold_at IS NOT NULL AND NEW.hold_at IS NULL
      AND OLD.deletion_effective_at IS DISTINCT FROM NEW.deletion_effective_at))
    EXECUTE FUNCTION reclaim.customer_note()', v_customers);
  EXECUTE format('CREATE OR REPLACE TRIGGER customer_note_gone AFTER DELETE ON %s FOR EACH ROW
    WHEN (OLD.status <> ''deleted'') EXECUTE FUNCTION reclaim.customer_note()', v_customers);
  EXECUTE format('CREATE OR REPLACE TRIGGER customer_note_new AFTER INSERT ON %s FOR EACH ROW
    WHEN (NEW.status <> ''active'' OR NEW.version > 1) EXECUTE FUNCTION reclaim.customer_note()', v_customers);
  -- After the statement: what follows from the changes, then every gate is told.
  EXECUTE format('CREATE OR REPLACE TRIGGER customer_follow AFTER INSERT OR DELETE OR UPDATE OF status, tm_delete, hold_at ON %s
    FOR EACH STATEMENT EXECUTE FUNCTION reclaim.customer_follow()', v_customers);
  EXECUTE format('CREATE OR REPLACE TRIGGER customer_notify AFTER INSERT OR DELETE OR UPDATE OF status, tm_delete, hold_at ON %s
    FOR EACH STATEMENT EXECUTE FUNCTION reclaim.notify_channel(''reclaim_customers'')', v_customers);

  -- billing_accounts, before each row.
  EXECUTE format('CREATE OR REPLACE TRIGGER billing_settle BEFORE INSERT OR UPDATE ON %s FOR EACH ROW
    EXECUTE FUNCTION reclaim.billing_settle()', v_accounts);
  EXECUTE format('CREATE OR REPLACE TRIGGER billing_settle_holds BEFORE INSERT OR UPDATE OF status, hold_reasons, tm_delete
    ON %s FOR EACH ROW EXECUTE FUNCTION reclaim.billing_settle_holds()', v_accounts);
  -- After each row.
  EXECUTE format('CREATE OR REPLACE TRIGGER billing_follow AFTER UPDATE ON %s FOR EACH ROW
    WHEN (OLD.status IS DISTINCT FROM NEW.status OR OLD.hold_reasons IS DISTINCT FROM NEW.hold_reasons
      OR OLD.balance_micros < NEW.balance_micros) EXECUTE FUNCTION reclaim.billing_follow()', v_accounts);
  EXECUTE format('CREATE OR REPLACE TRIGGER billing_follow_new AFTER INSERT ON %s FOR EACH ROW
    WHEN (NEW.status = ''frozen'') EXECUTE FUNCTION reclaim.billing_follow()', v_accounts);

  -- What settled the rows while the tables were being adopted (step 0022). Looked for first: DROP TRIGGER keeps readers out, too.
  FOR v_adopting IN SELECT tgrelid::regclass FROM pg_trigger WHERE tgname = 'zz_reclaim_adopting' LOOP
    EXECUTE format('DROP TRIGGER zz_reclaim_adopting ON %s', v_adopting);
  END LOOP;
  DROP FUNCTION IF EXISTS reclaim.adopting_customer();
  DROP FUNCTION IF EXISTS reclaim.adopting_account();
  DROP FUNCTION IF EXISTS reclaim.adopt_time(timestamptz);
END
$$;
