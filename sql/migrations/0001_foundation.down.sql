DROP TABLE reclaim.installation;

DO $$
DECLARE
  v_rest text := regexp_replace(current_setting('search_path'), '^reclaim, *', '');
BEGIN
  EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I RESET search_path', current_database());
  IF v_rest <> '"$user", public' AND v_rest <> current_setting('search_path') THEN
    EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET search_path = %s', current_database(), v_rest);
  END IF;
EXCEPTION WHEN insufficient_privilege THEN
  RAISE NOTICE 'this role may not reset its own search_path';
END
$$;
