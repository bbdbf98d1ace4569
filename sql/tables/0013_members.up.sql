-- Users who act for a customer beside its owner (customer_customers.owner_user_id). The triggers that check and announce
-- them follow with the functions.
CREATE TABLE reclaim.customer_members (
  customer_id uuid NOT NULL,
  user_id uuid NOT NULL,
  role text NOT NULL DEFAULT 'member'  -- for the team's own programs: it decides nothing here
    CONSTRAINT customer_member_role_is_a_name CHECK (role ~ '^[a-z][a-z0-9_-]{0,62}$' AND role <> 'owner'),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (customer_id, user_id)
);
CREATE INDEX customer_members_by_user ON reclaim.customer_members (user_id, customer_id);

-- A user may own several customers: customer_by_owner finds them. Customers are found by the beginning of their name or
-- address in lower case; a part of the text, since an index cannot hold texts of any length.
DO $$
DECLARE
  v_home regclass := (SELECT CASE relkind WHEN 'v' THEN to_regclass('public.customer_customers') ELSE oid::regclass END
    FROM pg_class WHERE oid = to_regclass('reclaim.customer_customers'));
BEGIN
  EXECUTE (SELECT format('DROP INDEX %s', indexrelid::regclass) FROM pg_index
           WHERE indrelid = v_home AND indexrelid::regclass::text ~ 'customer_one_live_per_owner$');
  EXECUTE format('CREATE INDEX customer_by_name ON %s (lower(left(name, 100)) text_pattern_ops) WHERE status <> ''deleted''', v_home);
  EXECUTE format('CREATE INDEX customer_by_email ON %s (lower(left(email, 100)) text_pattern_ops) WHERE status <> ''deleted''', v_home);
END
$$;

REVOKE ALL ON ALL TABLES IN SCHEMA reclaim FROM PUBLIC;
