DO $$
BEGIN
  IF EXISTS (SELECT FROM reclaim.billing_subscriptions WHERE period_months IS NOT NULL AND status <> 'ended') THEN
    RAISE EXCEPTION 'there are subscriptions by calendar month or year'
      USING HINT = 'Before this step a period was a number of seconds. End them (DELETE /v1/billing/subscriptions/{id}), then take the step back.';
  END IF;
END
$$;
UPDATE reclaim.billing_subscriptions SET period_seconds = period_months * 2592000 WHERE period_months IS NOT NULL;
ALTER TABLE reclaim.billing_subscriptions DROP CONSTRAINT subscription_has_one_period, DROP CONSTRAINT subscription_has_its_anchor,
  DROP COLUMN period_months, DROP COLUMN anchor_day, ALTER COLUMN period_seconds SET NOT NULL;
ALTER TABLE reclaim.billing_charges DROP COLUMN started_at, DROP COLUMN charged_micros;
DELETE FROM reclaim.cascade_participants WHERE name = 'reclaim.adjustments';
DELETE FROM reclaim.cascade_receipts WHERE participant = 'reclaim.adjustments';
DROP TABLE reclaim.billing_adjustments;
ALTER TABLE reclaim.installation DROP COLUMN freeze_limit;
