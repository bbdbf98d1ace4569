-- Usage that a freeze interrupted, calendar periods, and corrections of balances.

-- started_at: when the usage began that ended at occurred_at; null: it has no length. charged_micros: what was taken of
-- amount_micros, which is what was asked for; null: all of it.
ALTER TABLE reclaim.billing_charges ADD COLUMN started_at timestamptz, ADD COLUMN charged_micros bigint;
ALTER TABLE reclaim.billing_charges ADD CONSTRAINT charge_is_of_what_was_asked
  CHECK (charged_micros BETWEEN 0 AND amount_micros);
ALTER TABLE reclaim.billing_charges ADD CONSTRAINT usage_begins_before_it_ends CHECK (started_at <= occurred_at);

-- A period is a number of seconds, or of calendar months in UTC: then it begins on anchor_day, or on the last day of a
-- month that is shorter.
ALTER TABLE reclaim.billing_subscriptions ALTER COLUMN period_seconds DROP NOT NULL,
  ADD COLUMN period_months smallint CHECK (period_months IN (1, 12)),
  ADD COLUMN anchor_day smallint CHECK (anchor_day BETWEEN 1 AND 31),
  ADD CONSTRAINT subscription_has_one_period CHECK (num_nonnulls(period_seconds, period_months) = 1),
  ADD CONSTRAINT subscription_has_its_anchor CHECK ((period_months IS NULL) = (anchor_day IS NULL));

-- What was added to balances, or taken off them, by hand. A reference is booked once, whatever account it names.
CREATE TABLE reclaim.billing_adjustments (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  billing_account_id uuid NOT NULL,
  amount_micros bigint NOT NULL CHECK (amount_micros <> 0),
  reference text COLLATE "C" NOT NULL UNIQUE,
  reason text NOT NULL CHECK (octet_length(reason) <= 1000), -- free text
  actor text NOT NULL,
  actor_id uuid,
  balance_after_micros bigint NOT NULL,
  created_at timestamptz NOT NULL
);
CREATE INDEX billing_adjustments_by_account ON reclaim.billing_adjustments (billing_account_id, created_at);

-- Corrections stay, like charges; what people wrote into them goes.
INSERT INTO reclaim.cascade_participants (name, kind, table_name, customer_column, id_of, scrub_columns, page_size)
  VALUES ('reclaim.adjustments', 'table', 'reclaim.billing_adjustments', 'billing_account_id', 'account', '{reference,reason}', 10000);

-- They have one argument more now.
DROP FUNCTION IF EXISTS reclaim.billing_refusal(reclaim.billing_accounts, timestamptz);
DROP FUNCTION IF EXISTS reclaim.billing_charge(uuid, bigint, text, timestamptz, uuid);
DROP FUNCTION IF EXISTS reclaim.billing_subscribe(uuid, bigint, bigint, timestamptz, text);
-- Calendar periods need the whole subscription.
DROP FUNCTION IF EXISTS reclaim.billing_next_charge(uuid, timestamptz, bigint);

-- How often a customer may freeze itself in 30 days; null: as often as it likes.
ALTER TABLE reclaim.installation ADD COLUMN freeze_limit integer;

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
