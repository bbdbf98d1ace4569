-- Money: charges, subscriptions, and when an account was frozen.
--
-- A freeze is a hold with the reason account_frozen (src/customers puts it on and takes it off, in the transaction that
-- changes the customer). What follows from it are triggers on billing_accounts, so that every program that changes an
-- account gets all of it in the same transaction: the history of freezes, subscriptions that pause and go on.

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

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA reclaim FROM PUBLIC;
