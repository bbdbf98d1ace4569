-- reclaim.blocked_users says of every mixture of foreign keys whether PostgreSQL then deletes the user.
BEGIN;
SET LOCAL client_min_messages = warning;
SELECT plan(15);

CREATE TEMP TABLE outcomes (keys text, filled text, said boolean, stopped boolean, counted integer);
CREATE SCHEMA tap_keys;
INSERT INTO auth.users (id, email) VALUES ('00000000-0000-4000-8000-000000000001', 'one@example.com'),
  ('00000000-0000-4000-8000-000000000002', 'two@example.com');

CREATE FUNCTION pg_temp.stopped(p_user uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    DELETE FROM auth.users WHERE id = p_user;
    SET CONSTRAINTS ALL IMMEDIATE;
    RAISE EXCEPTION USING ERRCODE = 'RTAP1';
  EXCEPTION WHEN SQLSTATE 'RTAP1' THEN
    RETURN false;
  WHEN foreign_key_violation OR restrict_violation OR not_null_violation THEN
    RETURN true;
  END;
END
$$;

CREATE FUNCTION pg_temp.said(p_user uuid, p_owned text[] DEFAULT '{}') RETURNS boolean LANGUAGE sql AS $$
  SELECT p_user = ANY (b.users) IS TRUE FROM reclaim.blocked_users(ARRAY[p_user], p_owned || '{public.companies.owner_admin_uuid}'::text[], false) b
$$;

-- Table a refers to the user; b to the user, to a, or to both, its keys made in either order.
DO $$
DECLARE
  v_user constant uuid := '00000000-0000-4000-8000-000000000001';
  v_a text;
  v_to_user text;
  v_to_a text;
  v_user_first boolean;
  v_filled text;
  v_result outcomes;
BEGIN
  FOREACH v_a IN ARRAY ARRAY['CASCADE', 'NO ACTION', 'SET NULL'] LOOP
  FOREACH v_to_user IN ARRAY ARRAY['', 'NO ACTION', 'RESTRICT', 'CASCADE', 'SET NULL', 'NO ACTION INITIALLY DEFERRED'] LOOP
  FOREACH v_to_a IN ARRAY ARRAY['', 'NO ACTION', 'RESTRICT', 'CASCADE', 'SET NULL', 'NO ACTION INITIALLY DEFERRED'] LOOP
  FOREACH v_user_first IN ARRAY ARRAY[true, false] LOOP
    CONTINUE WHEN v_to_user = '' AND v_to_a = '' OR (v_to_user = '' OR v_to_a = '') AND NOT v_user_first;
    BEGIN
      EXECUTE 'CREATE TABLE tap_keys.a (id integer PRIMARY KEY, owner uuid REFERENCES auth.users ON DELETE ' || v_a || ')';
      CREATE TABLE tap_keys.b (owner uuid, a integer);
      IF v_user_first AND v_to_user <> '' THEN
        EXECUTE 'ALTER TABLE tap_keys.b ADD FOREIGN KEY (owner) REFERENCES auth.users ON DELETE ' || v_to_user;
      END IF;
      IF v_to_a <> '' THEN
        EXECUTE 'ALTER TABLE tap_keys.b ADD FOREIGN KEY (a) REFERENCES tap_keys.a ON DELETE ' || v_to_a;
      END IF;
      IF NOT v_user_first THEN
        EXECUTE 'ALTER TABLE tap_keys.b ADD FOREIGN KEY (owner) REFERENCES auth.users ON DELETE ' || v_to_user;
      END IF;
      INSERT INTO tap_keys.a VALUES (1, v_user);
      FOREACH v_filled IN ARRAY ARRAY['neither', 'owner', 'a', 'both'] LOOP
        DELETE FROM tap_keys.b;
        INSERT INTO tap_keys.b SELECT CASE WHEN v_filled IN ('owner', 'both') THEN v_user END, CASE WHEN v_filled IN ('a', 'both') THEN 1 END;
        SET CONSTRAINTS ALL IMMEDIATE;
        SET CONSTRAINTS ALL DEFERRED;
        INSERT INTO outcomes SELECT format('a %s, b to user %s, to a %s, %s', v_a, v_to_user, v_to_a, v_user_first), v_filled,
          pg_temp.said(v_user), pg_temp.stopped(v_user);
      END LOOP;
      DROP TABLE tap_keys.b, tap_keys.a;
    END;
  END LOOP; END LOOP; END LOOP; END LOOP;
END
$$;
SELECT cmp_ok((SELECT count(*) FROM outcomes), '>', 600::bigint, 'many mixtures were tried');
SELECT is_empty('SELECT * FROM outcomes WHERE said <> stopped', 'it says yes where the deletion is stopped, and only there');
SELECT cmp_ok((SELECT count(*) FROM outcomes WHERE said), '>', 100::bigint, 'often enough it says yes');
SELECT cmp_ok((SELECT count(*) FROM outcomes WHERE NOT said), '>', 100::bigint, 'and no');

-- Shapes that the mixtures lack.
CREATE FUNCTION pg_temp.agrees(p_expected boolean, p_tables text, p_rows text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  v_user constant uuid := '00000000-0000-4000-8000-000000000001';
  v_agrees boolean;
BEGIN
  BEGIN
    EXECUTE p_tables;
    EXECUTE p_rows USING v_user;
    v_agrees := p_expected = pg_temp.said(v_user) AND p_expected = pg_temp.stopped(v_user);
    RAISE EXCEPTION USING ERRCODE = 'RTAP2';
  EXCEPTION WHEN SQLSTATE 'RTAP2' THEN
    RETURN v_agrees;
  END;
END
$$;
SELECT ok(pg_temp.agrees(true, 'CREATE TABLE tap_keys.p (author uuid NOT NULL REFERENCES auth.users ON DELETE SET NULL)',
  'INSERT INTO tap_keys.p VALUES ($1)'), 'a column that cannot be set to null');
SELECT ok(pg_temp.agrees(true, 'CREATE TABLE tap_keys.p (author uuid NOT NULL REFERENCES auth.users ON DELETE SET DEFAULT)',
  'INSERT INTO tap_keys.p VALUES ($1)'), 'a column without a default');
SELECT ok(pg_temp.agrees(true, 'CREATE UNIQUE INDEX ON auth.users (id, email); CREATE TABLE tap_keys.p (author uuid, address text,
    FOREIGN KEY (author, address) REFERENCES auth.users (id, email))',
  'INSERT INTO tap_keys.p SELECT id, email FROM auth.users WHERE id = $1'), 'a key of two columns');
SELECT ok(pg_temp.agrees(true, 'CREATE TABLE tap_keys.p (author uuid REFERENCES auth.users) PARTITION BY HASH (author);
    CREATE TABLE tap_keys.p0 PARTITION OF tap_keys.p FOR VALUES WITH (MODULUS 1, REMAINDER 0); CREATE INDEX ON tap_keys.p (author)',
  'INSERT INTO tap_keys.p VALUES ($1)'), 'a partitioned table');
SELECT ok(pg_temp.agrees(true, 'CREATE TABLE tap_keys.p (id uuid PRIMARY KEY REFERENCES auth.users ON DELETE CASCADE, likes uuid REFERENCES tap_keys.p)',
  $$WITH mine AS (INSERT INTO tap_keys.p VALUES ($1)) INSERT INTO tap_keys.p VALUES ('00000000-0000-4000-8000-000000000002', $1)$$),
  'a table that refers to itself');
SELECT ok(pg_temp.agrees(true, 'CREATE TABLE tap_keys."P q" (id uuid PRIMARY KEY REFERENCES auth.users ON DELETE CASCADE);
    CREATE TABLE tap_keys.b (id integer PRIMARY KEY, "p Q" uuid REFERENCES tap_keys."P q" ON DELETE CASCADE);
    CREATE TABLE tap_keys.c (b integer REFERENCES tap_keys.b)',
  'WITH p AS (INSERT INTO tap_keys."P q" VALUES ($1)), b AS (INSERT INTO tap_keys.b VALUES (1, $1)) INSERT INTO tap_keys.c VALUES (1)'),
  'a chain of three tables, with names that need quotes');

-- What is said about them.
CREATE TABLE tap_keys.posts (author uuid REFERENCES auth.users);
INSERT INTO tap_keys.posts SELECT '00000000-0000-4000-8000-000000000001' FROM generate_series(1, 3);
SELECT results_eq($$SELECT keys, users, tables FROM reclaim.blocked_users(ARRAY(SELECT id FROM auth.users), '{public.companies.owner_admin_uuid}', true)$$,
  $$VALUES (1, ARRAY['00000000-0000-4000-8000-000000000001'::uuid], ARRAY['tap_keys.posts'])$$, 'each user once, with the table');
SELECT ok(NOT pg_temp.said('00000000-0000-4000-8000-000000000001', '{tap_keys.posts.author}'), 'ownership is looked at elsewhere');
SELECT is((SELECT lack FROM reclaim.deletion_keys('{public.companies.owner_admin_uuid}', false)), NULL, 'a small table needs no index');
INSERT INTO tap_keys.posts SELECT '00000000-0000-4000-8000-000000000001' FROM generate_series(1, 40000);
SELECT is((SELECT lack FROM reclaim.deletion_keys('{public.companies.owner_admin_uuid}', false)),
  'CREATE INDEX CONCURRENTLY ON tap_keys.posts (author)', 'strangers have no large table read from end to end');
SELECT is((SELECT lack FROM reclaim.deletion_keys('{public.companies.owner_admin_uuid}', true)), NULL, 'an operator may');

SELECT * FROM finish();
ROLLBACK;
