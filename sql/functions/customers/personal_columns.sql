-- Columns of Supabase Auth's users that are emptied where a row has to stay; a table may lack some.
CREATE OR REPLACE FUNCTION reclaim.personal_columns() RETURNS TABLE (name text, cleared text)
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog
AS $$
  VALUES ('email', '''deleted_'' || id || ''@removed.invalid'''), ('encrypted_password', ''''''),
    ('deleted_at', 'coalesce(deleted_at, clock_timestamp())'), ('raw_app_meta_data', '''{}'''),
    ('raw_user_meta_data', '''{}'''), ('phone', 'NULL'), ('email_change', ''''''), ('phone_change', ''''''),
    ('confirmation_token', ''''''), ('recovery_token', ''''''), ('email_change_token_new', ''''''),
    ('email_change_token_current', ''''''), ('phone_change_token', ''''''), ('reauthentication_token', '''''')
$$;
REVOKE ALL ON FUNCTION reclaim.personal_columns FROM PUBLIC;
