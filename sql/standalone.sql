-- As much of a Supabase database as Reclaim looks at, for trying it out or for running it without Supabase. What is
-- there already is left as it is.

CREATE SCHEMA IF NOT EXISTS auth;

CREATE TABLE IF NOT EXISTS auth.users (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  email varchar(255),
  encrypted_password varchar(255),
  email_confirmed_at timestamptz,
  last_sign_in_at timestamptz,
  is_sso_user boolean NOT NULL DEFAULT false,
  is_anonymous boolean NOT NULL DEFAULT false,
  deleted_at timestamptz,
  banned_until timestamptz,
  raw_app_meta_data jsonb,
  created_at timestamptz DEFAULT now()
);

-- One account an address, single sign-on aside.
CREATE UNIQUE INDEX IF NOT EXISTS users_email_partial_key ON auth.users (email) WHERE is_sso_user = false;

CREATE TABLE IF NOT EXISTS public.companies (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  owner_admin_uuid uuid REFERENCES auth.users (id) ON DELETE RESTRICT,
  name text NOT NULL DEFAULT '',
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS companies_owner_admin_uuid_idx ON public.companies (owner_admin_uuid);

CREATE TABLE IF NOT EXISTS public.company_admins (
  admin_uuid uuid REFERENCES auth.users (id) ON DELETE CASCADE,
  company_id uuid REFERENCES public.companies (id) ON DELETE CASCADE,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS company_admins_admin_uuid_idx ON public.company_admins (admin_uuid);
CREATE INDEX IF NOT EXISTS company_admins_company_id_idx ON public.company_admins (company_id);
