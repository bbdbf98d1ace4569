-- Copies of the tables that a freeze writes: the same rows and indexes, no triggers.

CREATE SCHEMA by_hand;
CREATE TABLE by_hand.customer_customers (LIKE reclaim.customer_customers INCLUDING ALL);
CREATE TABLE by_hand.billing_accounts (LIKE reclaim.billing_accounts INCLUDING ALL);
CREATE TABLE by_hand.billing_freezes (LIKE reclaim.billing_freezes INCLUDING ALL);
CREATE TABLE by_hand.billing_subscriptions (LIKE reclaim.billing_subscriptions INCLUDING ALL);
CREATE TABLE by_hand.event_outbox (LIKE reclaim.event_outbox INCLUDING ALL);
CREATE TABLE by_hand.customer_log (LIKE reclaim.customer_log INCLUDING ALL);
CREATE TABLE by_hand.customer_told (LIKE reclaim.customer_told INCLUDING ALL);
CREATE TABLE by_hand.work_items (LIKE reclaim.work_items INCLUDING ALL);
INSERT INTO by_hand.customer_customers SELECT * FROM reclaim.customer_customers;
INSERT INTO by_hand.billing_accounts SELECT * FROM reclaim.billing_accounts;
INSERT INTO by_hand.billing_subscriptions SELECT * FROM reclaim.billing_subscriptions;
