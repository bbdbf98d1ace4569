DO $$
DECLARE
  v_accounts regclass := reclaim.table_home('billing_accounts');
BEGIN
  EXECUTE format('DROP TRIGGER billing_settle_holds ON %s', v_accounts);
  EXECUTE format('DROP TRIGGER billing_follow ON %s', v_accounts);
  EXECUTE format('DROP TRIGGER billing_follow_new ON %s', v_accounts);
  EXECUTE format('DROP TRIGGER customer_freezes_accounts ON %s', reclaim.table_home('customer_customers'));
END
$$;
ALTER FUNCTION reclaim.billing_settle() SECURITY INVOKER;
ALTER FUNCTION reclaim.customer_settle() SECURITY INVOKER;
DROP FUNCTION reclaim.billing_unsubscribe(uuid);
DROP FUNCTION reclaim.billing_account_delete(uuid, uuid, uuid);
DROP FUNCTION reclaim.billing_valid_balance(uuid, bigint);
DROP FUNCTION reclaim.billing_put_off(uuid, text);
DROP FUNCTION reclaim.billing_charge_due(integer);
DROP FUNCTION reclaim.billing_charge_periods(reclaim.billing_subscriptions);
DROP FUNCTION reclaim.billing_pause(integer);
DROP FUNCTION reclaim.billing_subscribe(uuid, bigint, bigint, timestamptz, text);
DROP FUNCTION reclaim.billing_next_charge(uuid, timestamptz, bigint);
DROP FUNCTION reclaim.billing_charge(uuid, bigint, text, timestamptz, uuid);
DROP FUNCTION reclaim.billing_refusal(reclaim.billing_accounts, timestamptz);
DROP FUNCTION reclaim.billing_subscription_object(reclaim.billing_subscriptions);
DROP FUNCTION reclaim.billing_charge_object(reclaim.billing_charges);
DROP FUNCTION reclaim.billing_account_object(reclaim.billing_accounts);
DROP FUNCTION reclaim.customer_freezes_accounts(), reclaim.billing_follow(), reclaim.billing_settle_holds();
DROP FUNCTION reclaim.billing_freeze(uuid, uuid), reclaim.billing_thaw(uuid);
DROP FUNCTION reclaim.table_home(text);
DROP TABLE reclaim.billing_subscriptions, reclaim.billing_charges, reclaim.billing_freezes;
DROP FUNCTION reclaim.billing_subscription_settle();
DROP FUNCTION reclaim.billing_clock();
