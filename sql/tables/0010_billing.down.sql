DROP TABLE reclaim.billing_subscriptions, reclaim.billing_charges, reclaim.billing_freezes;
