-- People to try things on, in the tables of sql/standalone.sql. Repeating is harmless: missing rows are inserted, existing
-- ones are not changed. Every password is demo-password.
--
--   (any other address)   not registered
--   uma@example.com       registered, never confirmed the address, no company     orphan, case 1.1
--   viktor@example.com    confirmed the address, no company                       orphan, case 1.2
--   wendy@example.com     has a company, never confirmed the address              should not occur
--   olga@example.com      confirmed, owns a company                               complete
--   carlo@example.com     confirmed, administers olga's company                   complete
--   sam@example.com       confirmed, no company; signed in by SSO he has one      orphan, case 1.2
--   dora@example.com      was deleted softly                                      not registered
--   (no address)          an anonymous user
--   ada@example.com …     thirty who own a company each, to zoe@example.com       complete
--
-- The thirty, and olga, are customers too, with a billing account each: e0000000-0000-4000-8000-000000000101 is ada's,
-- …000000000004 olga's.

WITH person (number, address, provider, confirmed, signed_in, deleted) AS (
  VALUES
    (1, 'uma', 'email', false, false, false),
    (2, 'viktor', 'email', true, true, false),
    (3, 'wendy', 'email', false, false, false),
    (4, 'olga', 'email', true, true, false),
    (5, 'carlo', 'email', true, true, false),
    (6, 'sam', 'email', true, false, false),
    (7, 'sam', 'sso', true, true, false),
    (8, 'dora', 'email', true, true, true),
    (9, NULL, 'anonymous', false, true, false)
  UNION ALL
  SELECT 100 + number::integer, name, 'email', true, true, false
  FROM pg_catalog.unnest(pg_catalog.string_to_array(
    'ada aline ben cleo dario edda emil fay gus hana ida ivo jan jun kai lea leon mia milo nils noor otto pia quinn '
    'rosa theo yara yves zara zoe', ' ')) WITH ORDINALITY AS complete (name, number)
)
INSERT INTO auth.users (id, email, encrypted_password, email_confirmed_at, last_sign_in_at, is_sso_user, is_anonymous,
    deleted_at, raw_app_meta_data, created_at)
  SELECT ('d0000000-0000-4000-8000-' || pg_catalog.lpad(number::text, 12, '0'))::uuid, address || '@example.com',
    CASE WHEN provider = 'email' THEN '$2a$10$Q1e4lFb0c8Yq2nUu7xWv5O5bY/8VCrf.RWjbmavS6rpEPza0Lhyoi' ELSE '' END,
    CASE WHEN confirmed THEN pg_catalog.now() - interval '20 days' END,
    CASE WHEN signed_in THEN pg_catalog.now() - interval '1 day' END,
    provider = 'sso', provider = 'anonymous',
    CASE WHEN deleted THEN pg_catalog.now() - interval '3 days' END,
    pg_catalog.jsonb_build_object('provider', provider), pg_catalog.now() - interval '21 days'
  FROM person
  ON CONFLICT DO NOTHING;

-- Only for those who are there under their own id: an address may have been registered again.
WITH company (number, name) AS (
  VALUES (3, 'Example Windmill'), (4, 'Example Orchard'), (7, 'Example Sawmill')
  UNION ALL
  SELECT 100 + number::integer, 'Example ' || name
  FROM pg_catalog.unnest(pg_catalog.string_to_array(
    'Atelier Bakery Bicycles Books Carpentry Catering Ceramics Cinema Clinic Coffee Design Electrics Farm Ferry Flowers '
    'Gardens Glassworks Hotel Joinery Knitwear Laundry Lighting Masonry Optics Pharmacy Plumbing Printers Roofing '
    'Tailors Theatre', ' ')) WITH ORDINALITY AS complete (name, number)
)
INSERT INTO public.companies (id, owner_admin_uuid, name)
  SELECT ('c0000000-0000-4000-8000-' || pg_catalog.lpad(number::text, 12, '0'))::uuid, owner.id, company.name
  FROM company
  JOIN auth.users AS owner ON owner.id = ('d0000000-0000-4000-8000-' || pg_catalog.lpad(number::text, 12, '0'))::uuid
  ON CONFLICT DO NOTHING;

INSERT INTO public.company_admins (admin_uuid, company_id)
  SELECT carlo.id, olgas.id
  FROM auth.users AS carlo
  CROSS JOIN public.companies AS olgas
  WHERE carlo.id = 'd0000000-0000-4000-8000-000000000005' AND olgas.id = 'c0000000-0000-4000-8000-000000000004'
  ON CONFLICT DO NOTHING;

-- A customer that was deleted does not come back, though its row may be gone.
INSERT INTO reclaim.customer_customers (id, name, email, phone_number, address, owner_user_id, billing_account_id)
  SELECT ('e0000000' || pg_catalog.substr(owner.id::text, 9))::uuid, company.name, owner.email,
    '+1555010' || pg_catalog."right"(owner.id::text, 4), '1 Example Street', owner.id,
    ('b0000000' || pg_catalog.substr(owner.id::text, 9))::uuid
  FROM auth.users AS owner
  JOIN public.companies AS company ON company.owner_admin_uuid = owner.id
  WHERE (owner.id = 'd0000000-0000-4000-8000-000000000004'
      OR owner.id BETWEEN 'd0000000-0000-4000-8000-000000000101' AND 'd0000000-0000-4000-8000-000000000130')
    AND NOT EXISTS (SELECT FROM reclaim.erasures AS erasure
      WHERE erasure.customer_id = ('e0000000' || pg_catalog.substr(owner.id::text, 9))::uuid)
  ON CONFLICT DO NOTHING;

INSERT INTO reclaim.billing_accounts (id, customer_id, name, balance_micros)
  SELECT customer.billing_account_id, customer.id, 'Main account', 100000000
  FROM reclaim.customer_customers AS customer
  WHERE customer.id BETWEEN 'e0000000-0000-4000-8000-000000000001' AND 'e0000000-0000-4000-8000-000000000999'
    AND customer.status <> 'deleted' AND customer.billing_account_id IS NOT NULL
  ON CONFLICT DO NOTHING;

-- The services of a telephone company that keep something of a customer, with a table each: half of them only mark what is
-- deleted. What was erased stays erased.
DO $$
DECLARE
  v_name text;
  v_table text;
  v_number integer := 0;
  v_labels text[] := ARRAY['Tags', 'Agents', 'Phone numbers', 'Call flows', 'Campaigns', 'Queues', 'Contacts', 'Access keys',
    'Conversations', 'Call records', 'Conferences', 'Routes', 'Files', 'Billing documents'];
BEGIN
  IF pg_catalog.to_regnamespace('demo') IS NULL THEN
    CREATE SCHEMA demo;
  END IF;
  FOREACH v_name IN ARRAY ARRAY['tag', 'agent', 'number', 'flow', 'campaign', 'queue', 'contact', 'accesskey', 'conversation',
      'call', 'conference', 'route', 'storage', 'billing'] LOOP
    v_number := v_number + 1;
    v_table := 'demo.' || v_name || '_' || v_name || 's';
    IF pg_catalog.to_regclass(v_table) IS NULL THEN
      EXECUTE pg_catalog.format('CREATE TABLE %s (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer_id uuid NOT NULL,
        name text NOT NULL DEFAULT %L, tm_create timestamptz NOT NULL DEFAULT pg_catalog.now(), tm_delete timestamptz)', v_table, '');
      EXECUTE pg_catalog.format('CREATE INDEX ON %s (customer_id)', v_table);
    END IF;
    EXECUTE pg_catalog.format('INSERT INTO %1$s (customer_id, name)
      SELECT c.id, $1 || n || $2 || c.name FROM reclaim.customer_customers c, pg_catalog.generate_series(1, $3) AS n
      WHERE c.status <> $4 AND c.id BETWEEN $5 AND $6 AND NOT EXISTS (SELECT FROM %1$s t WHERE t.customer_id = c.id)', v_table)
      USING v_name || ' ', ' of ', 1 + v_number % 4, 'deleted', 'e0000000-0000-4000-8000-000000000001'::uuid,
        'e0000000-0000-4000-8000-000000000999'::uuid;
    IF NOT EXISTS (SELECT FROM reclaim.cascade_participants WHERE name = v_name) THEN
      PERFORM reclaim.cascade_add(v_name, v_table, 'customer_id', CASE WHEN v_number % 2 = 0 THEN 'tm_delete' END,
        CASE WHEN v_number % 2 = 0 THEN '{*}'::text[] END, NULL, false, 'customer', v_labels[v_number]);
    END IF;
  END LOOP;
END
$$;
