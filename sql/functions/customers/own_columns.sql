-- The columns of an adopted table that Reclaim knows; its view has these and no others.
CREATE OR REPLACE FUNCTION reclaim.own_columns(p_table text) RETURNS text[]
LANGUAGE sql IMMUTABLE
AS $$
  SELECT CASE p_table WHEN 'customer_customers' THEN '{id,name,detail,email,phone_number,address,webhook_method,webhook_uri,
    billing_account_id,status,tm_deletion_scheduled,tm_create,tm_update,tm_delete,owner_user_id,version,frozen_api_at,
    frozen_calls_at,frozen_billing_at,hold_reason,hold_at,changed_xid,deletion_effective_at,frozen_by,freeze_reason}'::text[]
  WHEN 'billing_accounts' THEN '{id,customer_id,name,status,hold_reasons,balance_micros,tm_create,tm_update,tm_delete}'::text[] END
$$;
REVOKE ALL ON FUNCTION reclaim.own_columns FROM PUBLIC;
