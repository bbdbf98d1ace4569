-- Money: charges, subscriptions, and when an account was frozen.
--
-- A freeze is a hold with the reason account_frozen (src/customers puts it on and takes it off, in the transaction that
-- changes the customer). What follows from it hangs on billing_accounts itself, so that whoever changes an account gets
-- all of it in the same transaction: the history of freezes, subscriptions that pause and go on.

-- The time that billing goes by. A function of its own, so that tests can move it.
CREATE FUNCTION reclaim.billing_clock() RETURNS timestamptz
LANGUAGE sql VOLATILE SET search_path = pg_catalog
AS 'SELECT clock_timestamp()';

-- Usage that occurred from frozen_at on, and before thawed_at, is never charged.
CREATE TABLE reclaim.billing_freezes (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  billing_account_id uuid NOT NULL,
  frozen_at timestamptz NOT NULL,
  thawed_at timestamptz CHECK (thawed_at >= frozen_at)
);
CREATE INDEX billing_freezes_by_account ON reclaim.billing_freezes (billing_account_id, frozen_at);
CREATE UNIQUE INDEX billing_freezes_one_open ON reclaim.billing_freezes (billing_account_id) WHERE thawed_at IS NULL;

-- What was taken off balances. A reference is charged once, whatever account it names.
CREATE TABLE reclaim.billing_charges (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  billing_account_id uuid NOT NULL,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  reference text COLLATE "C" NOT NULL UNIQUE,
  occurred_at timestamptz NOT NULL,
  subscription_id uuid,
  balance_after_micros bigint NOT NULL,
  created_at timestamptz NOT NULL
);
CREATE INDEX billing_charges_by_account ON reclaim.billing_charges (billing_account_id, occurred_at);

CREATE TABLE reclaim.billing_subscriptions (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  billing_account_id uuid NOT NULL,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  period_seconds bigint NOT NULL CHECK (period_seconds BETWEEN 1 AND 315360000),
  next_charge_at timestamptz NOT NULL,
  status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'paused', 'ended')),
  reference text COLLATE "C" UNIQUE,
  first_charge_at timestamptz,        -- as asked for, to know the same request again
  attempt_at timestamptz,             -- when the leader looks at it next; null: not before something changes
  tries integer NOT NULL DEFAULT 0,   -- in vain, for the charge that is due
  trouble text,                       -- why the last one was in vain
  tm_create timestamptz NOT NULL DEFAULT clock_timestamp(),
  tm_update timestamptz,
  tm_end timestamptz
);
CREATE INDEX billing_subscriptions_by_account ON reclaim.billing_subscriptions (billing_account_id);
CREATE INDEX billing_subscriptions_unpaid ON reclaim.billing_subscriptions (billing_account_id) WHERE tries > 0;
CREATE INDEX billing_subscriptions_due ON reclaim.billing_subscriptions (attempt_at) WHERE attempt_at IS NOT NULL;

CREATE FUNCTION reclaim.billing_subscription_settle() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
BEGIN
  NEW.attempt_at := coalesce(NEW.attempt_at, CASE WHEN NEW.status = 'active' THEN NEW.next_charge_at END);
  RETURN NEW;
END
$$;
CREATE TRIGGER billing_subscription_settle BEFORE INSERT ON reclaim.billing_subscriptions
  FOR EACH ROW EXECUTE FUNCTION reclaim.billing_subscription_settle();

-- A frozen account has a reason, one with a reason is frozen, and an account of a frozen customer is born frozen. Who only
-- knows the status and sets it to active lifts every hold but the freeze, which ends with the customer's.
--
-- These run as their owner: the table may belong to a team whose programs have no rights in this schema.
CREATE FUNCTION reclaim.billing_settle_holds() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_before text := NEW.status;
  v_customer text;
BEGIN
  NEW.hold_reasons := coalesce(NEW.hold_reasons, '{}');
  IF NEW.status = 'deleted' THEN
    RETURN NEW;
  END IF;
  IF TG_OP = 'INSERT' THEN
    -- Waits for a freeze under way, and makes one wait that begins now.
    SELECT c.status INTO v_customer FROM reclaim.customer_customers c WHERE c.id = NEW.customer_id FOR SHARE;
    IF v_customer = 'frozen' AND NOT 'account_frozen' = ANY (NEW.hold_reasons) THEN
      NEW.hold_reasons := array_append(NEW.hold_reasons, 'account_frozen');
    END IF;
  ELSIF NEW.status = 'frozen' AND NEW.hold_reasons = '{}' AND OLD.hold_reasons <> '{}' THEN
    NEW.status := 'active';
  ELSIF NEW.status = 'active' AND OLD.status = 'frozen' AND NEW.hold_reasons = OLD.hold_reasons THEN
    NEW.hold_reasons := CASE WHEN 'account_frozen' = ANY (OLD.hold_reasons) THEN ARRAY['account_frozen'] ELSE '{}' END;
  END IF;
  IF NEW.status = 'frozen' AND NEW.hold_reasons = '{}' THEN
    NEW.hold_reasons := ARRAY['held'];
  ELSIF NEW.status = 'active' AND NEW.hold_reasons <> '{}' THEN
    NEW.status := 'frozen';
  END IF;
  IF TG_OP = 'UPDATE' AND NEW.status <> v_before THEN
    NEW.tm_update := clock_timestamp();
  END IF;
  RETURN NEW;
END
$$;

ALTER FUNCTION reclaim.billing_settle() SECURITY DEFINER;
ALTER FUNCTION reclaim.customer_settle() SECURITY DEFINER;

-- Charges due before the freeze are still owed; those after it wait.
CREATE FUNCTION reclaim.billing_freeze(p_account uuid, p_customer uuid) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_frozen timestamptz;
BEGIN
  SELECT c.tm_deletion_scheduled INTO v_frozen FROM reclaim.customer_customers c
    WHERE c.id = p_customer AND c.status = 'frozen';
  v_frozen := coalesce(v_frozen, reclaim.billing_clock());
  INSERT INTO reclaim.billing_freezes (billing_account_id, frozen_at) VALUES (p_account, v_frozen)
    ON CONFLICT (billing_account_id) WHERE thawed_at IS NULL DO NOTHING;
  UPDATE reclaim.billing_subscriptions SET status = 'paused', tm_update = clock_timestamp(),
      attempt_at = CASE WHEN next_charge_at < v_frozen THEN attempt_at END
    WHERE billing_account_id = p_account AND status = 'active';
END
$$;

CREATE FUNCTION reclaim.billing_thaw(p_account uuid) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_frozen timestamptz;
  v_thawed timestamptz;
BEGIN
  UPDATE reclaim.billing_freezes SET thawed_at = greatest(reclaim.billing_clock(), frozen_at)
    WHERE billing_account_id = p_account AND thawed_at IS NULL RETURNING frozen_at, thawed_at INTO v_frozen, v_thawed;
  IF FOUND THEN
    UPDATE reclaim.billing_subscriptions SET next_charge_at = next_charge_at + (v_thawed - v_frozen)
      WHERE billing_account_id = p_account AND status = 'paused' AND next_charge_at >= v_frozen;
  END IF;
  UPDATE reclaim.billing_subscriptions SET status = 'active', attempt_at = next_charge_at, tries = 0,
      tm_update = clock_timestamp()
    WHERE billing_account_id = p_account AND status = 'paused';
END
$$;

CREATE FUNCTION reclaim.billing_follow() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_was boolean := TG_OP = 'UPDATE' AND 'account_frozen' = ANY (OLD.hold_reasons);
  v_is boolean := 'account_frozen' = ANY (NEW.hold_reasons);
BEGIN
  IF NEW.status = 'deleted' THEN
    UPDATE reclaim.billing_subscriptions SET status = 'ended', attempt_at = NULL, tm_update = clock_timestamp(),
        tm_end = clock_timestamp()
      WHERE billing_account_id = NEW.id AND status <> 'ended';
  ELSIF v_is AND NOT v_was THEN
    PERFORM reclaim.billing_freeze(NEW.id, NEW.customer_id);
  ELSIF v_was AND NOT v_is THEN
    PERFORM reclaim.billing_thaw(NEW.id);
  ELSE
    -- There is money again, or nothing holds it any more: what waits for that waits no longer.
    UPDATE reclaim.billing_subscriptions SET attempt_at = next_charge_at, tries = 0
      WHERE billing_account_id = NEW.id AND attempt_at IS NOT NULL AND tries > 0;
  END IF;
  RETURN NULL;
END
$$;

-- A charge is admitted at an instant that its account's lock has seen, so a freeze may only be stamped once it holds the
-- locks of all the customer's accounts: otherwise a charge could slip between the stamp and the lock, and have occurred
-- inside the freeze. Its name has it run before customer_settle.
CREATE FUNCTION reclaim.customer_freezes_accounts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now timestamptz;
BEGIN
  PERFORM FROM reclaim.billing_accounts a WHERE a.customer_id = NEW.id ORDER BY a.id FOR NO KEY UPDATE;
  -- A time of this transaction means now; an older one was meant.
  IF NEW.tm_deletion_scheduled IS NULL OR NEW.tm_deletion_scheduled >= transaction_timestamp() THEN
    v_now := reclaim.billing_clock();
    IF NEW.frozen_billing_at >= transaction_timestamp() THEN
      NEW.frozen_billing_at := v_now;
    END IF;
    NEW.tm_deletion_scheduled := v_now;
  END IF;
  RETURN NEW;
END
$$;

-- Where a table is that a view may stand for here.
CREATE FUNCTION reclaim.table_home(p_name text) RETURNS regclass
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT CASE WHEN c.relkind = 'v' THEN to_regclass('public.' || p_name) ELSE c.oid::regclass END
  FROM pg_class c WHERE c.oid = to_regclass('reclaim.' || p_name)
$$;

DO $$
DECLARE
  v_accounts regclass := reclaim.table_home('billing_accounts');
  v_customers regclass := reclaim.table_home('customer_customers');
BEGIN
  -- Holds whose reason nobody wrote down must not look like a freeze, which a recovery would lift.
  EXECUTE format('UPDATE %s SET hold_reasons = ''{held}'' WHERE status = ''frozen'' AND hold_reasons = ''{}''
    AND customer_id NOT IN (SELECT id FROM %s WHERE status = ''frozen'')', v_accounts, v_customers);
  EXECUTE format('CREATE TRIGGER billing_settle_holds BEFORE INSERT OR UPDATE OF status, hold_reasons, tm_delete ON %s
    FOR EACH ROW EXECUTE FUNCTION reclaim.billing_settle_holds()', v_accounts);
  EXECUTE format('CREATE TRIGGER billing_follow AFTER UPDATE ON %s FOR EACH ROW
    WHEN (OLD.status IS DISTINCT FROM NEW.status OR OLD.hold_reasons IS DISTINCT FROM NEW.hold_reasons
      OR OLD.balance_micros < NEW.balance_micros) EXECUTE FUNCTION reclaim.billing_follow()', v_accounts);
  EXECUTE format('CREATE TRIGGER billing_follow_new AFTER INSERT ON %s FOR EACH ROW WHEN (NEW.status = ''frozen'')
    EXECUTE FUNCTION reclaim.billing_follow()', v_accounts);
  EXECUTE format('CREATE TRIGGER customer_freezes_accounts BEFORE UPDATE OF status ON %s FOR EACH ROW
    WHEN (NEW.status = ''frozen'' AND OLD.status IS DISTINCT FROM ''frozen'')
    EXECUTE FUNCTION reclaim.customer_freezes_accounts()', v_customers);
  -- Freezes that began before this.
  EXECUTE format('INSERT INTO reclaim.billing_freezes (billing_account_id, frozen_at)
    SELECT a.id, coalesce(c.tm_deletion_scheduled, a.tm_update, clock_timestamp())
    FROM %s a LEFT JOIN %s c ON c.id = a.customer_id AND c.status = ''frozen''
    WHERE a.status = ''frozen'' AND ''account_frozen'' = ANY (a.hold_reasons)', v_accounts, v_customers);
  EXECUTE format('UPDATE %s a SET status = ''frozen'', hold_reasons = array_append(a.hold_reasons, ''account_frozen'')
    FROM %s c WHERE c.id = a.customer_id AND c.status = ''frozen'' AND a.status <> ''deleted''
    AND NOT ''account_frozen'' = ANY (a.hold_reasons)', v_accounts, v_customers);
END
$$;

-- The objects of the API.
CREATE FUNCTION reclaim.billing_account_object(a reclaim.billing_accounts) RETURNS json
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT row_to_json(o) FROM (
    SELECT a.id, a.customer_id, coalesce(a.name, '') AS name, a.status, a.hold_reasons, a.balance_micros,
      (SELECT reclaim.rfc3339(f.frozen_at) FROM reclaim.billing_freezes f
       WHERE f.billing_account_id = a.id AND f.thawed_at IS NULL) AS frozen_at,
      reclaim.rfc3339(a.tm_create) AS tm_create, reclaim.rfc3339(a.tm_update) AS tm_update,
      reclaim.rfc3339(a.tm_delete) AS tm_delete) AS o
$$;

CREATE FUNCTION reclaim.billing_charge_object(c reclaim.billing_charges) RETURNS json
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT row_to_json(o) FROM (
    SELECT c.id, c.billing_account_id, c.amount_micros, c.reference, reclaim.rfc3339(c.occurred_at) AS occurred_at,
      c.subscription_id, c.balance_after_micros, reclaim.rfc3339(c.created_at) AS created_at) AS o
$$;

CREATE FUNCTION reclaim.billing_subscription_object(s reclaim.billing_subscriptions) RETURNS json
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT row_to_json(o) FROM (
    SELECT s.id, s.billing_account_id, s.amount_micros, s.period_seconds, s.status,
      reclaim.rfc3339(s.next_charge_at) AS next_charge_at, s.reference, s.trouble,
      reclaim.rfc3339(s.tm_create) AS tm_create, reclaim.rfc3339(s.tm_update) AS tm_update,
      reclaim.rfc3339(s.tm_end) AS tm_end) AS o
$$;

-- Why money may not be taken from an account for usage of that instant; null: it may. The account's row must be locked,
-- or the answer may be old.
CREATE FUNCTION reclaim.billing_refusal(a reclaim.billing_accounts, p_occurred timestamptz) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog SET enable_seqscan = off
AS $$
BEGIN
  IF a.status = 'deleted' OR a.tm_delete IS NOT NULL THEN
    RETURN 'deleted';
  ELSIF a.status <> 'active' AND NOT a.hold_reasons <@ ARRAY['account_frozen'] THEN
    RETURN 'held';
  ELSIF EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.id = a.customer_id AND c.status = 'deleted') THEN
    RETURN 'deleted'; -- its accounts follow when the cascade comes to them
  ELSIF 'account_frozen' = ANY (a.hold_reasons) AND NOT EXISTS (
      SELECT FROM reclaim.billing_freezes f WHERE f.billing_account_id = a.id AND f.thawed_at IS NULL) THEN
    RETURN 'frozen'; -- nobody knows since when
  END IF;
  RETURN (SELECT CASE WHEN f.thawed_at IS NULL THEN 'frozen' ELSE 'was_frozen' END FROM reclaim.billing_freezes f
    WHERE f.billing_account_id = a.id AND f.frozen_at <= p_occurred AND (f.thawed_at IS NULL OR p_occurred < f.thawed_at)
    ORDER BY f.thawed_at NULLS FIRST LIMIT 1);
END
$$;

-- Takes an amount off an account, once a reference. The outcome is charged, again (nothing is taken: it was before),
-- differs (that reference was charged, but not this), unknown, future, deleted, held, frozen, was_frozen or too_little.
--
-- The row is locked by a statement of its own: under READ COMMITTED those after it see what its last holder committed,
-- and the clock is read only then. A plan is kept for as long as its session: one made while the tables were small must not
-- read all of large ones.
CREATE FUNCTION reclaim.billing_charge(p_account uuid, p_amount bigint, p_reference text, p_occurred timestamptz,
  p_subscription uuid DEFAULT NULL, OUT outcome text, OUT object json)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog SET enable_seqscan = off
AS $$
DECLARE
  v_account reclaim.billing_accounts;
  v_charge reclaim.billing_charges;
  v_now timestamptz;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'charges are exact under READ COMMITTED only' USING ERRCODE = 'invalid_transaction_state';
  END IF;
  SELECT * INTO v_account FROM reclaim.billing_accounts a WHERE a.id = p_account FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    outcome := 'unknown';
    RETURN;
  END IF;
  v_now := reclaim.billing_clock();

  SELECT * INTO v_charge FROM reclaim.billing_charges c WHERE c.reference = p_reference;
  IF NOT FOUND THEN
    outcome := CASE WHEN p_occurred > v_now THEN 'future' ELSE
      coalesce(reclaim.billing_refusal(v_account, coalesce(p_occurred, v_now)),
        CASE WHEN v_account.balance_micros < p_amount THEN 'too_little' END) END;
    IF outcome IS NOT NULL THEN
      RETURN;
    END IF;
    INSERT INTO reclaim.billing_charges
        (billing_account_id, amount_micros, reference, occurred_at, subscription_id, balance_after_micros, created_at)
      VALUES (p_account, p_amount, p_reference, coalesce(p_occurred, v_now), p_subscription,
        v_account.balance_micros - p_amount, v_now)
      ON CONFLICT (reference) DO NOTHING RETURNING * INTO v_charge;
    IF FOUND THEN
      UPDATE reclaim.billing_accounts SET balance_micros = balance_micros - p_amount WHERE id = p_account;
      outcome := 'charged';
      object := reclaim.billing_charge_object(v_charge);
      RETURN;
    END IF;
    -- Charged to another account meanwhile.
    SELECT * INTO STRICT v_charge FROM reclaim.billing_charges c WHERE c.reference = p_reference;
  END IF;
  outcome := CASE WHEN v_charge.billing_account_id = p_account AND v_charge.amount_micros = p_amount
    AND coalesce(p_occurred = v_charge.occurred_at, true) THEN 'again' ELSE 'differs' END;
  object := reclaim.billing_charge_object(v_charge);
END
$$;

-- A subscription's charge follows the last by a period, and by the time that the account was frozen in between. A freeze
-- that is not over yet moves it when it is.
CREATE FUNCTION reclaim.billing_next_charge(p_account uuid, p_last timestamptz, p_seconds bigint) RETURNS timestamptz
LANGUAGE plpgsql STABLE SET search_path = pg_catalog
AS $$
DECLARE
  v_next timestamptz := p_last + make_interval(secs => p_seconds);
  v_freeze reclaim.billing_freezes;
BEGIN
  FOR v_freeze IN SELECT * FROM reclaim.billing_freezes f
      WHERE f.billing_account_id = p_account AND f.frozen_at > p_last AND f.thawed_at IS NOT NULL ORDER BY f.frozen_at LOOP
    EXIT WHEN v_next < v_freeze.frozen_at;
    v_next := v_next + (v_freeze.thawed_at - v_freeze.frozen_at);
  END LOOP;
  RETURN v_next;
END
$$;

-- The outcome is made, again, differs, unknown, deleted, held, frozen or past.
CREATE FUNCTION reclaim.billing_subscribe(p_account uuid, p_amount bigint, p_seconds bigint, p_first timestamptz,
  p_reference text, OUT outcome text, OUT object json)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
DECLARE
  v_account reclaim.billing_accounts;
  v_made reclaim.billing_subscriptions;
  v_first timestamptz;
  v_freeze reclaim.billing_freezes;
BEGIN
  SELECT * INTO v_account FROM reclaim.billing_accounts a WHERE a.id = p_account FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    outcome := 'unknown';
    RETURN;
  END IF;
  SELECT * INTO v_made FROM reclaim.billing_subscriptions s WHERE s.reference = p_reference;
  IF NOT FOUND THEN
    v_first := coalesce(p_first, reclaim.billing_clock());
    outcome := reclaim.billing_refusal(v_account, reclaim.billing_clock());
    -- Each missed period is a charge of its own.
    IF outcome IS NULL AND v_first + make_interval(secs => 1000.0 * p_seconds) < reclaim.billing_clock() THEN
      outcome := 'past';
    END IF;
    IF outcome IS NOT NULL THEN
      RETURN;
    END IF;
    FOR v_freeze IN SELECT * FROM reclaim.billing_freezes f
        WHERE f.billing_account_id = p_account AND f.thawed_at > v_first ORDER BY f.frozen_at LOOP
      IF v_first >= v_freeze.frozen_at AND v_first < v_freeze.thawed_at THEN
        v_first := v_first + (v_freeze.thawed_at - v_freeze.frozen_at);
      END IF;
    END LOOP;
    INSERT INTO reclaim.billing_subscriptions
        (billing_account_id, amount_micros, period_seconds, next_charge_at, reference, first_charge_at)
      VALUES (p_account, p_amount, p_seconds, v_first, p_reference, p_first)
      ON CONFLICT (reference) DO NOTHING RETURNING * INTO v_made;
    IF FOUND THEN
      outcome := 'made';
      object := reclaim.billing_subscription_object(v_made);
      RETURN;
    END IF;
    SELECT * INTO STRICT v_made FROM reclaim.billing_subscriptions s WHERE s.reference = p_reference;
  END IF;
  outcome := CASE WHEN (v_made.billing_account_id, v_made.amount_micros, v_made.period_seconds) = (p_account, p_amount, p_seconds)
    AND v_made.first_charge_at IS NOT DISTINCT FROM p_first THEN 'again' ELSE 'differs' END;
  object := reclaim.billing_subscription_object(v_made);
END
$$;

-- Charges one subscription for each period that has begun, and says how often it could, and whether it was refused.
-- The account is locked.
CREATE FUNCTION reclaim.billing_charge_periods(s reclaim.billing_subscriptions, OUT charged integer, OUT refused boolean)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
DECLARE
  v_outcome text;
  v_open timestamptz;
BEGIN
  charged := 0;
  refused := false;
  SELECT f.frozen_at INTO v_open FROM reclaim.billing_freezes f
    WHERE f.billing_account_id = s.billing_account_id AND f.thawed_at IS NULL;
  -- What is left after so many is done when the others have had their turn.
  WHILE NOT refused AND charged < 50 AND s.next_charge_at <= reclaim.billing_clock()
      AND (v_open IS NULL OR s.next_charge_at < v_open) LOOP
    SELECT c.outcome INTO v_outcome FROM reclaim.billing_charge(s.billing_account_id, s.amount_micros,
      format('sub:%s:%s', s.id, reclaim.rfc3339(s.next_charge_at)), s.next_charge_at, s.id) c;
    IF v_outcome IN ('charged', 'again') THEN
      charged := charged + 1;
      s.tries := 0;
      s.next_charge_at := reclaim.billing_next_charge(s.billing_account_id, s.next_charge_at, s.period_seconds);
    ELSIF v_outcome = 'was_frozen' THEN -- only if someone wrote the history anew: such a period is free
      s.next_charge_at := s.next_charge_at + make_interval(secs => s.period_seconds);
    ELSE
      refused := true;
      s.tries := s.tries + 1;
    END IF;
  END LOOP;
  UPDATE reclaim.billing_subscriptions SET next_charge_at = s.next_charge_at, tries = s.tries,
      trouble = CASE WHEN refused THEN v_outcome END,
      attempt_at = CASE WHEN refused THEN reclaim.billing_clock() + reclaim.billing_pause(s.tries)
                        WHEN v_open IS NULL OR s.next_charge_at < v_open THEN s.next_charge_at END
    WHERE id = s.id;
END
$$;

-- 5 seconds, doubled each time, up to an hour.
CREATE FUNCTION reclaim.billing_pause(p_tries integer) RETURNS interval
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog
AS $$ SELECT least(interval '5 seconds' * power(2, least(greatest(p_tries, 1) - 1, 20)), interval '1 hour') $$;

-- Charges what is due, up to p_most subscriptions, oldest first. Each account is a step of its own: one that is locked, or
-- fails, is left for later and keeps nobody else waiting.
CREATE FUNCTION reclaim.billing_charge_due(p_most integer, OUT seen integer, OUT charged bigint, OUT refused bigint,
  OUT failed bigint)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog SET enable_seqscan = off SET lock_timeout = '100ms'
AS $$
DECLARE
  v_now timestamptz := reclaim.billing_clock(); -- a variable, so that the index is asked for what is due
  v_due record;
  v_id uuid;
  v_subscription reclaim.billing_subscriptions;
  v_done record;
  v_charged bigint;
  v_refused bigint;
BEGIN
  seen := 0;
  charged := 0;
  refused := 0;
  failed := 0;
  FOR v_due IN
      SELECT d.billing_account_id AS account, array_agg(d.id ORDER BY d.attempt_at, d.id) AS ids FROM (
        SELECT s.billing_account_id, s.id, s.attempt_at FROM reclaim.billing_subscriptions s
        WHERE s.attempt_at <= v_now ORDER BY s.attempt_at LIMIT p_most) d
      GROUP BY d.billing_account_id ORDER BY d.billing_account_id LOOP
    seen := seen + cardinality(v_due.ids);
    v_charged := 0;
    v_refused := 0;
    BEGIN
      PERFORM FROM reclaim.billing_accounts a WHERE a.id = v_due.account FOR NO KEY UPDATE;
      FOREACH v_id IN ARRAY v_due.ids LOOP
        SELECT * INTO v_subscription FROM reclaim.billing_subscriptions s WHERE s.id = v_id AND s.attempt_at <= v_now FOR UPDATE;
        CONTINUE WHEN NOT FOUND; -- charged, paused or ended meanwhile
        v_done := reclaim.billing_charge_periods(v_subscription);
        v_charged := v_charged + v_done.charged;
        v_refused := v_refused + v_done.refused::integer;
      END LOOP;
    EXCEPTION WHEN OTHERS THEN
      failed := failed + 1;
      PERFORM reclaim.billing_put_off(v_due.account, SQLSTATE);
      CONTINUE;
    END;
    charged := charged + v_charged;
    refused := refused + v_refused;
  END LOOP;
END
$$;

CREATE FUNCTION reclaim.billing_put_off(p_account uuid, p_trouble text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
BEGIN
  UPDATE reclaim.billing_subscriptions SET tries = tries + 1, trouble = p_trouble,
      attempt_at = reclaim.billing_clock() + reclaim.billing_pause(tries + 1)
    WHERE billing_account_id = p_account AND attempt_at <= reclaim.billing_clock();
EXCEPTION WHEN lock_not_available THEN
  NULL; -- whoever has the account has these too; they stay due
END
$$;

-- Whether an account could be charged that much for usage of now; the reason when not is the API's name for it.
CREATE FUNCTION reclaim.billing_valid_balance(p_account uuid, p_amount bigint, OUT outcome text, OUT object json)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog
AS $$
DECLARE
  v_account reclaim.billing_accounts;
  v_refusal text;
BEGIN
  SELECT * INTO v_account FROM reclaim.billing_accounts a WHERE a.id = p_account;
  outcome := CASE WHEN FOUND THEN 'found' ELSE 'unknown' END;
  v_refusal := reclaim.billing_refusal(v_account, clock_timestamp());
  object := json_build_object('valid', v_refusal IS NULL AND v_account.balance_micros >= p_amount, 'reason', CASE
    WHEN v_refusal = 'deleted' THEN 'ACCOUNT_DELETED'
    WHEN v_refusal IS NOT NULL THEN 'ACCOUNT_FROZEN'
    WHEN v_account.balance_micros < p_amount THEN 'BALANCE_TOO_LITTLE' END);
END
$$;

-- Status and time together (billing_settle); its subscriptions end with it (billing_follow).
CREATE FUNCTION reclaim.billing_account_delete(p_account uuid, p_actor_id uuid, p_correlation_id uuid,
  OUT outcome text, OUT object json)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
DECLARE
  v_account reclaim.billing_accounts;
BEGIN
  SELECT * INTO v_account FROM reclaim.billing_accounts a WHERE a.id = p_account FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    outcome := 'unknown';
    RETURN;
  END IF;
  IF v_account.status <> 'deleted' THEN
    UPDATE reclaim.billing_accounts a SET status = 'deleted' WHERE a.id = p_account RETURNING * INTO v_account;
    INSERT INTO reclaim.customer_log (customer_id, action, actor, actor_id, outcome, correlation_id)
      VALUES (v_account.customer_id, 'delete_billing_account', 'admin', p_actor_id, 'done', p_correlation_id);
  END IF;
  outcome := 'found';
  object := reclaim.billing_account_object(v_account);
END
$$;

CREATE FUNCTION reclaim.billing_unsubscribe(p_subscription uuid, OUT outcome text, OUT object json)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog
AS $$
DECLARE
  v_subscription reclaim.billing_subscriptions;
BEGIN
  -- The account first, as everywhere: a charge under way is waited for.
  PERFORM FROM reclaim.billing_accounts a WHERE a.id = (
    SELECT s.billing_account_id FROM reclaim.billing_subscriptions s WHERE s.id = p_subscription) FOR NO KEY UPDATE;
  UPDATE reclaim.billing_subscriptions s SET status = 'ended', attempt_at = NULL, tm_update = clock_timestamp(),
      tm_end = clock_timestamp()
    WHERE s.id = p_subscription AND s.status <> 'ended';
  SELECT * INTO v_subscription FROM reclaim.billing_subscriptions s WHERE s.id = p_subscription;
  outcome := CASE WHEN FOUND THEN 'found' ELSE 'unsubscribed' END;
  object := CASE WHEN outcome = 'found' THEN reclaim.billing_subscription_object(v_subscription) END;
END
$$;

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA reclaim FROM PUBLIC;
