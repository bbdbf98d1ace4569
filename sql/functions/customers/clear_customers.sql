-- Clears what is personal of deleted customers, or of customers that are deleted by it; the logins of their owners and
-- members go with them. p_sealed: for each what is stored of its last mail (src/customers/last_mail.h), or null for none: the sealed
-- address, the salted hash of the address, the hash of the link's secret and the keyed hash of the address, with colons between them.
-- Without the first no mail is sent.
-- p_owners: of rows that are gone. Returns how many rows it has cleared.
CREATE OR REPLACE FUNCTION reclaim.clear_customers(p_ids uuid[], p_sealed text[], p_owners uuid[]) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
  SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_now timestamptz := reclaim.now();
  v_users uuid[];
  v_count integer;
  v_languages text[] := reclaim.customer_languages(p_ids); -- the column may be cleared, too
BEGIN
  IF EXISTS (SELECT FROM reclaim.mailbox) THEN
    DELETE FROM reclaim.mailbox m USING reclaim.customer_customers c LEFT JOIN auth.users u ON u.id = c.owner_user_id
      WHERE c.id = ANY (p_ids) AND m.recipient IN (c.email, u.email);
  END IF;
  IF reclaim.is_own_table('customer_customers') THEN
    UPDATE reclaim.customer_customers c SET name = 'deleted_user_' || c.id, detail = '',
        email = 'deleted_' || c.id || '@removed.invalid', phone_number = '', address = '', webhook_method = '',
        webhook_uri = '', status = 'deleted', tm_delete = coalesce(c.tm_delete, v_now)
      WHERE c.id = ANY (p_ids);
    GET DIAGNOSTICS v_count = ROW_COUNT;
  ELSE
    v_count := reclaim.clear_columns('customer_customers', p_ids);
  END IF;
  IF NOT reclaim.is_own_table('billing_accounts') THEN
    PERFORM reclaim.clear_columns('billing_accounts', p_ids);
  END IF;
  v_users := reclaim.erasure_users_note(p_ids, p_owners);
  IF v_users <> '{}' THEN
    PERFORM reclaim.remove_users(v_users, p_ids);
  END IF;
  PERFORM reclaim.erasure_address(p_ids, p_sealed);
  PERFORM reclaim.erasure_cleared(p_ids);
  INSERT INTO reclaim.work_items (kind, payload)
    SELECT 'mail', jsonb_strip_nulls(jsonb_build_object('template', 'customer-deleted', 'customer_id', one,
      'sealed', split_part(sealed, ':', 1),
      'language', language))
    FROM unnest(p_ids, p_sealed, v_languages) AS mail (one, sealed, language) WHERE split_part(sealed, ':', 1) <> '';
  UPDATE reclaim.customer_told SET language = NULL WHERE customer_id = ANY (p_ids) AND language IS NOT NULL;
  PERFORM pg_notify('reclaim_work', '');
  RETURN v_count;
END
$$;
REVOKE ALL ON FUNCTION reclaim.clear_customers FROM PUBLIC;
