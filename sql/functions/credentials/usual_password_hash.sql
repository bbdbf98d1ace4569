-- How most password hashes of auth.users begin: method and cost. Null when none of a sample has a known method. Reads
-- some 10,000 rows at most, of random pages where the table is known to be larger.
CREATE OR REPLACE FUNCTION reclaim.usual_password_hash() RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
  v_users pg_class;
  v_percent real := 100;
BEGIN
  SELECT * INTO v_users FROM pg_class WHERE oid = 'auth.users'::regclass;
  IF v_users.relkind NOT IN ('r', 'p') THEN
    RETURN NULL; -- TABLESAMPLE is for tables
  END IF;
  IF v_users.reltuples > 10000 THEN
    v_percent := 100 * 10000 / v_users.reltuples;
  END IF;
  RETURN (
    SELECT beginning FROM (
      SELECT substring(encrypted_password::text
          FROM '^(?:\$2[aby]\$[0-9]{2}\$|\$argon2id?\$v=19\$m=[0-9]+,t=[0-9]+,p=[0-9]+\$)') AS beginning
        FROM auth.users TABLESAMPLE SYSTEM (v_percent) LIMIT 10000) AS sample
    WHERE beginning IS NOT NULL GROUP BY beginning ORDER BY count(*) DESC, beginning LIMIT 1);
END
$$;
REVOKE ALL ON FUNCTION reclaim.usual_password_hash FROM PUBLIC;
