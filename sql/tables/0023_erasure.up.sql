-- What an erasure keeps and why, whose logins it removed, and looking again at customers whose erasure is complete.

-- The tables of RECLAIM_OWNERSHIP as 'schema.table.column'; written by `reclaim serve` when it starts.
ALTER TABLE reclaim.installation ADD COLUMN ownership text[] NOT NULL
  DEFAULT '{public.companies.owner_admin_uuid,public.company_admins.admin_uuid}';

ALTER TABLE reclaim.cascade_participants
  ADD COLUMN label text NOT NULL DEFAULT '', -- words for people
  ADD COLUMN id_of text NOT NULL DEFAULT 'customer' CHECK (id_of IN ('customer', 'user', 'account')); -- what customer_column holds

-- kept: the participant was disabled or removed before it erased; error says so.
ALTER TABLE reclaim.cascade_receipts DROP CONSTRAINT cascade_receipts_status_check,
  ADD CONSTRAINT cascade_receipts_status_check CHECK (status IN ('pending', 'done', 'failed', 'kept')),
  ADD COLUMN late_rows bigint NOT NULL DEFAULT 0, -- of rows: those that came after the receipt
  ADD COLUMN late_at timestamptz;                 -- when such rows were last found

ALTER TABLE reclaim.erasures
  ADD COLUMN reopened_at timestamptz, -- when something more was to be erased after it had been complete
  ADD COLUMN rescan_at timestamptz;   -- when the leader looks again
CREATE INDEX erasures_rescan_idx ON reclaim.erasures (rescan_at) WHERE rescan_at IS NOT NULL;

-- The owners and members that a customer had when it was deleted. Their rows in auth.users are gone or hold nothing personal.
CREATE TABLE reclaim.erasure_users (
  customer_id uuid NOT NULL,
  user_id uuid NOT NULL,
  PRIMARY KEY (customer_id, user_id)
);

-- What an erasure left in place, beside participants: a table's rows, or a column of them. The ledger lists it.
CREATE TABLE reclaim.erasure_kept (
  customer_id uuid NOT NULL,
  name text NOT NULL,               -- 'public.companies', 'public.companies.vat_number'
  kind text NOT NULL CHECK (kind IN ('table', 'column')),
  reason text NOT NULL,             -- a sentence without personal data
  rows bigint NOT NULL DEFAULT 1,   -- 0: not known
  kept_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (customer_id, name)
);

-- Charges stay, their references are emptied: a team may have written names into them.
INSERT INTO reclaim.cascade_participants (name, kind, table_name, customer_column, id_of, scrub_columns, page_size)
  VALUES ('reclaim.charges', 'table', 'reclaim.billing_charges', 'billing_account_id', 'account', '{reference}', 10000);
INSERT INTO reclaim.cascade_receipts (customer_id, participant)
  SELECT e.customer_id, 'reclaim.charges' FROM reclaim.erasures e WHERE EXISTS (SELECT FROM reclaim.billing_accounts a
    JOIN reclaim.billing_charges c ON c.billing_account_id = a.id WHERE a.customer_id = e.customer_id);
UPDATE reclaim.erasures e SET completed_at = NULL, reopened_at = clock_timestamp() FROM reclaim.cascade_receipts r
  WHERE r.customer_id = e.customer_id AND r.participant = 'reclaim.charges' AND e.completed_at IS NOT NULL;
UPDATE reclaim.billing_subscriptions s SET reference = NULL FROM reclaim.billing_accounts a
  JOIN reclaim.erasures e ON e.customer_id = a.customer_id WHERE a.id = s.billing_account_id AND s.reference IS NOT NULL;
-- The dialogs of calls that are over.
UPDATE reclaim.call_calls SET sip_call_id = NULL, from_tag = NULL, to_tag = NULL, cseq = NULL,
    hangup_reason = CASE WHEN hangup_reason IN ('', 'normal', 'account_frozen', 'account_deleted') THEN hangup_reason ELSE '' END
  WHERE tm_delete IS NOT NULL AND status = 'hangup';

-- Replaced by functions with more arguments.
DROP FUNCTION IF EXISTS reclaim.cascade_add(text, text, text, text, text[], integer, boolean);
DROP FUNCTION IF EXISTS reclaim.remove_users(uuid[]);

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA reclaim FROM PUBLIC;
