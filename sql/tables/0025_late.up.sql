-- What comes late: personal data in rows that were cleared already, and events that are told once more.

-- A release that adopted tables by the former text of step 0011 left columns that it did not know when it deleted a customer.
-- The leader looks at these rows as it looks at rows that come after a receipt.
UPDATE reclaim.erasures SET rescan_at = clock_timestamp()
  WHERE completed_at < (SELECT applied_at FROM reclaim.schema_migrations WHERE version = 23) AND rescan_at IS NULL
    AND EXISTS (SELECT FROM reclaim.adopted_columns a WHERE a.relation LIKE 'public.%' AND a.column_name <> '');

-- What was left on the accounts of a deleted customer, for an event that is written again after it was pruned.
ALTER TABLE reclaim.customer_told ADD COLUMN remaining_micros numeric;
UPDATE reclaim.customer_told t SET remaining_micros = (o.payload ->> 'remaining_balance_micros')::numeric
  FROM reclaim.event_outbox o WHERE o.customer_id = t.customer_id AND o.type = 'customer_deleted' AND t.status = 'deleted'
    AND o.sequence = t.version AND o.payload ->> 'remaining_balance_micros' IS NOT NULL;
