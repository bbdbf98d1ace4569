-- reclaim.sees_all_rows says of every mixture of policies what PostgreSQL then does.
BEGIN;
SET LOCAL client_min_messages = warning;
SELECT plan(17);

CREATE ROLE tap_me;
CREATE ROLE tap_group;
CREATE ROLE tap_other;
GRANT tap_group TO tap_me;
CREATE ROLE tap_careful NOINHERIT;
GRANT tap_group TO tap_careful;
GRANT USAGE ON SCHEMA reclaim TO tap_me, tap_careful;
GRANT EXECUTE ON FUNCTION reclaim.sees_all_rows(regclass, text) TO tap_me, tap_careful;
CREATE SCHEMA tap_rows;
GRANT USAGE, CREATE ON SCHEMA tap_rows TO tap_me, tap_careful;
CREATE TABLE tap_rows.t (id integer PRIMARY KEY, note text);
INSERT INTO tap_rows.t SELECT n, '' FROM generate_series(1, 3) n;
GRANT ALL ON tap_rows.t TO tap_me, tap_careful;
ALTER TABLE tap_rows.t ENABLE ROW LEVEL SECURITY;

-- How many of the three rows the command reaches as that role; -1: an error.
CREATE FUNCTION pg_temp.reached(p_role text, p_command text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  v_rows integer;
BEGIN
  BEGIN
    EXECUTE format('SET LOCAL ROLE %I', p_role);
    IF p_command = 'SELECT' THEN
      PERFORM FROM tap_rows.t WHERE id > 0;
    ELSIF p_command = 'UPDATE' THEN
      UPDATE tap_rows.t SET note = 'x' WHERE id > 0;
    ELSIF p_command = 'DELETE' THEN
      DELETE FROM tap_rows.t WHERE id > 0;
    ELSIF p_command = 'UPDATE DELETE' THEN
      PERFORM FROM tap_rows.t WHERE id > 0 FOR UPDATE;
      GET DIAGNOSTICS v_rows = ROW_COUNT;
      IF v_rows = 3 THEN
        DELETE FROM tap_rows.t WHERE id > 0;
      END IF;
    ELSE
      INSERT INTO tap_rows.t VALUES (4, ''), (0, '');
      UPDATE tap_rows.t SET note = 'x' WHERE id > 0 AND id < 4;
      GET DIAGNOSTICS v_rows = ROW_COUNT;
      IF v_rows = 3 THEN
        DELETE FROM tap_rows.t WHERE id > 0 AND id < 4;
      END IF;
    END IF;
    GET DIAGNOSTICS v_rows = ROW_COUNT;
    RAISE EXCEPTION USING ERRCODE = 'RTAP1';
  EXCEPTION WHEN SQLSTATE 'RTAP1' THEN
    RETURN v_rows;
  WHEN insufficient_privilege THEN
    RETURN -1;
  END;
END
$$;

CREATE FUNCTION pg_temp.said(p_role text, p_command text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  v_said boolean;
BEGIN
  BEGIN
    EXECUTE format('SET LOCAL ROLE %I', p_role);
    v_said := reclaim.sees_all_rows('tap_rows.t', p_command);
    RAISE EXCEPTION USING ERRCODE = 'RTAP1';
  EXCEPTION WHEN SQLSTATE 'RTAP1' THEN
    RETURN v_said;
  END;
END
$$;

CREATE TEMP TABLE outcomes (role text, permissive text, restrictive text, command text, said boolean, reached integer);

-- Permissive policies for these commands, for that role; beside them a restrictive one that hides a row, or none.
DO $$
DECLARE
  v_set text[];
  v_role text;
  v_me text;
  v_restrictive text;
  v_command text;
  v_results outcomes[];
BEGIN
  FOREACH v_me IN ARRAY ARRAY['tap_me', 'tap_careful'] LOOP
  FOR v_set IN SELECT string_to_array(s, ' ') FROM unnest(ARRAY['', 'ALL', 'SELECT', 'UPDATE', 'DELETE', 'SELECT UPDATE',
      'SELECT DELETE', 'SELECT UPDATE DELETE']) AS s LOOP
  FOREACH v_role IN ARRAY ARRAY['PUBLIC', 'tap_me', 'tap_group', 'tap_other', 'tap_other, tap_me'] LOOP
  FOREACH v_restrictive IN ARRAY ARRAY['', 'ALL TO PUBLIC', 'SELECT TO tap_me', 'UPDATE TO tap_me', 'DELETE TO tap_me',
      'ALL TO tap_group', 'ALL TO tap_other', 'INSERT TO PUBLIC'] LOOP
    BEGIN
      FOREACH v_command IN ARRAY v_set LOOP
        EXECUTE format('CREATE POLICY %I ON tap_rows.t FOR %s TO %s USING (true)', 'p' || v_command, v_command, v_role);
      END LOOP;
      IF v_restrictive LIKE 'INSERT%' THEN
        EXECUTE format('CREATE POLICY r ON tap_rows.t AS RESTRICTIVE FOR %s WITH CHECK (false)', v_restrictive);
      ELSIF v_restrictive <> '' THEN
        EXECUTE format('CREATE POLICY r ON tap_rows.t AS RESTRICTIVE FOR %s USING (id <> 2)', v_restrictive);
      END IF;
      v_results := ARRAY(SELECT ROW(v_me, v_role || ': ' || array_to_string(v_set, ' '), v_restrictive, c, pg_temp.said(v_me, c),
        pg_temp.reached(v_me, c))::outcomes FROM unnest(ARRAY['SELECT', 'UPDATE', 'DELETE', 'UPDATE DELETE', 'ALL']) AS c);
      RAISE EXCEPTION USING ERRCODE = 'RTAP2';
    EXCEPTION WHEN SQLSTATE 'RTAP2' THEN
      INSERT INTO outcomes SELECT * FROM unnest(v_results);
    END;
  END LOOP; END LOOP; END LOOP; END LOOP;
END
$$;

SELECT is((SELECT count(*) FROM outcomes), 3200::bigint, 'every role, command and restrictive policy was tried');
SELECT is_empty('SELECT * FROM outcomes WHERE said <> (reached = 3)', 'it says yes where every row is reached, and only there');
SELECT cmp_ok((SELECT count(*) FROM outcomes WHERE said), '>', 100::bigint, 'often enough it says yes');
SELECT ok(bool_or(said) AND NOT bool_and(said), command || ' has both answers') FROM outcomes GROUP BY command ORDER BY command;

CREATE POLICY all_rows ON tap_rows.t USING (true) WITH CHECK (false);
SELECT ok(pg_temp.said('tap_me', 'DELETE'), 'rows that can be deleted');
SELECT ok(NOT pg_temp.said('tap_me', 'UPDATE'), 'and not be updated, since the check fails');
SELECT ok(reclaim.sees_all_rows('tap_rows.t', 'UPDATE'), 'policies are nothing to the table''s owner');
ALTER TABLE tap_rows.t OWNER TO tap_me;
ALTER TABLE tap_rows.t FORCE ROW LEVEL SECURITY;
SELECT ok(NOT pg_temp.said('tap_me', 'UPDATE'), 'unless it is forced upon the owner');

CREATE VIEW tap_rows.v AS SELECT * FROM tap_rows.t;
ALTER VIEW tap_rows.v OWNER TO tap_me;
SELECT ok(NOT reclaim.sees_all_rows('tap_rows.v', 'UPDATE'), 'also through a view of the owner''s');
SELECT is(reclaim.row_security_mend('tap_rows.v', 'UPDATE'), 'CREATE POLICY tap_me_all ON tap_rows.t FOR ALL TO tap_me USING (true)', 'for whom a policy is named');
CREATE POLICY mine ON tap_rows.t TO tap_me USING (true);
SELECT ok(reclaim.sees_all_rows('tap_rows.v', 'UPDATE'), 'unless a policy shows that owner all');
SELECT is(reclaim.row_security_mend('tap_rows.v', 'UPDATE'), NULL, 'and then there is nothing to mend');
SELECT throws_ok($$SELECT reclaim.sees_all_rows('tap_rows.t', 'delete')$$, '22023', NULL, 'what it does not know is an error, never a yes');

SELECT * FROM finish();
ROLLBACK;
