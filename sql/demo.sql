-- People to try things on, one for each row of the state matrix; every password is demo-password. Repeating is harmless.
--
--   uma@example.com      registered, never confirmed the address, no company     orphan, case 1.1
--   viktor@example.com   confirmed the address, no company                       orphan, case 1.2
--   wendy@example.com    has a company, never confirmed the address              should not occur
--   olga@example.com     confirmed, owns a company                               complete
--   carlo@example.com    confirmed, administers olga's company                   complete
--   sam@example.com      confirmed, no company; signed in by SSO he has one      orphan, case 1.2
--   dora@example.com     was deleted softly                                      not registered
--   (an anonymous user, who has no address)
--   and thirty who are complete, from ada@example.com to zoe@example.com

CREATE TEMPORARY TABLE demo_people (
  id uuid, email text, confirmed boolean, signed_in boolean, sso boolean, deleted boolean, company text
) ON COMMIT DROP;
INSERT INTO demo_people VALUES
  ('d0000000-0000-4000-8000-000000000001', 'uma@example.com', false, false, false, false, NULL),
  ('d0000000-0000-4000-8000-000000000002', 'viktor@example.com', true, true, false, false, NULL),
  ('d0000000-0000-4000-8000-000000000003', 'wendy@example.com', false, false, false, false, 'Example Windmill'),
  ('d0000000-0000-4000-8000-000000000004', 'olga@example.com', true, true, false, false, 'Example Orchard'),
  ('d0000000-0000-4000-8000-000000000005', 'carlo@example.com', true, true, false, false, NULL),
  ('d0000000-0000-4000-8000-000000000006', 'sam@example.com', true, false, false, false, NULL),
  ('d0000000-0000-4000-8000-000000000007', 'sam@example.com', true, true, true, false, 'Example Sawmill'),
  ('d0000000-0000-4000-8000-000000000008', 'dora@example.com', true, true, false, true, NULL),
  ('d0000000-0000-4000-8000-000000000009', NULL, false, true, false, false, NULL);
INSERT INTO demo_people
SELECT ('d0000000-0000-4000-8000-0000000001' || lpad(n::text, 2, '0'))::uuid, name || '@example.com', true, true, false,
  false, 'Example ' || initcap(name)
FROM unnest(ARRAY['ada', 'aline', 'ben', 'cleo', 'dario', 'edda', 'emil', 'fay', 'gus', 'hana', 'ida', 'ivo', 'jan',
  'jun', 'kai', 'lea', 'leon', 'mia', 'milo', 'nils', 'noor', 'otto', 'pia', 'quinn', 'rosa', 'theo', 'yara', 'yves',
  'zara', 'zoe']) WITH ORDINALITY AS p(name, n);

INSERT INTO auth.users (id, email, encrypted_password, email_confirmed_at, last_sign_in_at, is_sso_user, is_anonymous,
  deleted_at, raw_app_meta_data, created_at)
SELECT id, email, CASE WHEN email IS NULL OR sso THEN '' ELSE
    '$2b$10$FDbjyGYy5w8rrbMQSBCuCOpT948v8458QSBsJP5Ewa2pYW7TMhh.K' END,
  CASE WHEN confirmed THEN now() - interval '20 days' END, CASE WHEN signed_in THEN now() - interval '1 day' END, sso,
  email IS NULL, CASE WHEN deleted THEN now() - interval '3 days' END,
  jsonb_build_object('provider', CASE WHEN sso THEN 'sso' WHEN email IS NULL THEN 'anonymous' ELSE 'email' END),
  now() - interval '21 days'
FROM demo_people
ON CONFLICT DO NOTHING;

INSERT INTO public.companies (id, owner_admin_uuid, name)
SELECT ('c' || substr(p.id::text, 2))::uuid, p.id, p.company
FROM demo_people p JOIN auth.users u ON u.id = p.id
WHERE p.company IS NOT NULL
ON CONFLICT DO NOTHING;

INSERT INTO public.company_admins (admin_uuid, company_id)
SELECT u.id, c.id
FROM auth.users u, public.companies c
WHERE u.id = 'd0000000-0000-4000-8000-000000000005' AND c.id = 'c0000000-0000-4000-8000-000000000004'
  AND NOT EXISTS (SELECT 1 FROM public.company_admins a WHERE a.admin_uuid = u.id AND a.company_id = c.id);
