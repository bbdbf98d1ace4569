-- Gives adopted tables back: what was added goes, what was changed is as it was. Tables that the former text of step 0011
-- adopted stay as they are until that step is taken back. What could not be restored is told in pg_temp.reclaim_differences,
-- which the program prints.
CREATE TEMP TABLE IF NOT EXISTS reclaim_differences (what text NOT NULL);
-- A table cannot be altered while a trigger of the team's waits for the commit.
SET CONSTRAINTS ALL IMMEDIATE;
DO $$
DECLARE
  v_name text;
  v_statement text;
BEGIN
  FOR v_name IN SELECT name FROM reclaim.adoption WHERE to_regclass('reclaim.own_' || name) IS NOT NULL LOOP
    EXECUTE format('DROP VIEW reclaim.%I', v_name);
    EXECUTE format('ALTER TABLE reclaim.%I RENAME TO %I', 'own_' || v_name, v_name);
  END LOOP;
  FOR v_name IN SELECT name FROM reclaim.adoption WHERE to_regclass('public.' || name) IS NOT NULL LOOP
    EXECUTE format('DROP TRIGGER IF EXISTS zz_reclaim_adopting ON public.%I', v_name);
  END LOOP;
  FOR v_statement IN SELECT statement FROM reclaim.adoption_undo ORDER BY id DESC LOOP
    BEGIN
      EXECUTE v_statement;
    EXCEPTION WHEN OTHERS THEN
      IF SQLSTATE IN ('55P03', '40P01', '57014') THEN
        RAISE;
      END IF;
      INSERT INTO pg_temp.reclaim_differences VALUES (format('not taken back: %s (%s)', regexp_replace(left(v_statement, 300), '\s+', ' ', 'g'), SQLERRM));
    END;
  END LOOP;
  INSERT INTO pg_temp.reclaim_differences
    SELECT format('public.%s: %s %s', a.name, CASE WHEN d.was THEN 'no longer has' ELSE 'now has' END, d.what)
    FROM reclaim.adoption a CROSS JOIN LATERAL (
      SELECT true AS was, one AS what FROM unnest(a.before) AS one
        WHERE one NOT IN (SELECT reclaim.adopt_shape(to_regclass('public.' || a.name)))
      UNION ALL
      SELECT false, one FROM reclaim.adopt_shape(to_regclass('public.' || a.name)) AS one WHERE NOT one = ANY (a.before)) AS d;
END
$$;
DELETE FROM reclaim.adopted_columns WHERE relation IN (SELECT 'public.' || name FROM reclaim.adoption) AND column_name <> '';
DROP FUNCTION IF EXISTS reclaim.adopt_shape(regclass), reclaim.adopt_alter(regclass, text), reclaim.adopt_alter(jsonb, jsonb),
  reclaim.adopt_view(text, text, text), reclaim.adopt_time(timestamptz);
-- These are there when the step was not finished.
DROP FUNCTION IF EXISTS reclaim.adopting_customer(), reclaim.adopting_account(), reclaim.step_next(), reclaim.adopt_begin(text),
  reclaim.adopt_rows(text), reclaim.adopt_customers(), reclaim.adopt_switch(text), reclaim.adopt_undo(text),
  reclaim.adopt_account_function(text);
DROP TABLE IF EXISTS reclaim.adoption_index, reclaim.adoption_key, reclaim.adoption_plan;
DROP TABLE reclaim.adoption, reclaim.adoption_undo;
