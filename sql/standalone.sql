-- What Reclaim finds in a Supabase database and a bare one lacks: the part of auth.users that it uses, and two tables
-- that say who completed a registration. What exists is left as it is; repeating it is harmless.
DO $$
BEGIN
  IF pg_catalog.to_regnamespace('auth') IS NULL THEN
    CREATE SCHEMA auth;
  END IF;

  IF pg_catalog.to_regclass('auth.users') IS NULL THEN
    CREATE TABLE auth.users (
      id uuid PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
      email varchar(255), -- in lower case
      encrypted_password varchar(255),
      email_confirmed_at timestamptz,
      last_sign_in_at timestamptz,
      is_sso_user boolean NOT NULL DEFAULT false,
      is_anonymous boolean NOT NULL DEFAULT false,
      deleted_at timestamptz,
      banned_until timestamptz,
      raw_app_meta_data jsonb,
      created_at timestamptz DEFAULT pg_catalog.now()
    );
    -- One address may belong to any number of single sign-on users beside the one who has a password.
    CREATE UNIQUE INDEX users_email_partial_key ON auth.users (email) WHERE is_sso_user = false;
    CREATE INDEX users_email_sso_idx ON auth.users (email) WHERE is_sso_user;
  END IF;

  IF pg_catalog.to_regclass('public.companies') IS NULL THEN
    CREATE TABLE public.companies (
      id uuid PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
      owner_admin_uuid uuid NOT NULL REFERENCES auth.users (id) ON DELETE RESTRICT,
      name text NOT NULL DEFAULT '',
      created_at timestamptz NOT NULL DEFAULT pg_catalog.now()
    );
    CREATE INDEX companies_owner_admin_uuid_idx ON public.companies (owner_admin_uuid);
  END IF;

  IF pg_catalog.to_regclass('public.company_admins') IS NULL THEN
    CREATE TABLE public.company_admins (
      admin_uuid uuid NOT NULL REFERENCES auth.users (id) ON DELETE CASCADE,
      company_id uuid NOT NULL REFERENCES public.companies (id) ON DELETE CASCADE,
      created_at timestamptz NOT NULL DEFAULT pg_catalog.now(),
      PRIMARY KEY (admin_uuid, company_id) -- in this order it is also the index on admin_uuid
    );
    CREATE INDEX company_admins_company_id_idx ON public.company_admins (company_id);
  END IF;
END
$$;
