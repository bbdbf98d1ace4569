-- Takes lines of a journal that this database lacks: it was restored from a backup. Those whom they name are refused everywhere until
-- they are erased again (reclaim.replay_erasures). p_hashes: in hex. Returns how many lines were new here.
CREATE OR REPLACE FUNCTION reclaim.journal_lose(p_hashes text[], p_lines text[]) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_new bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(1919247212, 7); -- as for writing lines: journals have them in the order of their ids
  WITH line AS (
    SELECT n.place, decode(n.hash, 'hex') AS hash, n.line, split_part(n.line, E'\t', 1)::jsonb AS claims
      FROM unnest(p_hashes, p_lines) WITH ORDINALITY AS n (hash, line, place)
  ), added AS (
    INSERT INTO reclaim.journal_lines (hash, line, kind, imported, lost)
      SELECT l.hash, l.line, l.claims ->> 'kind', true, true FROM line l ORDER BY l.place ON CONFLICT (hash) DO NOTHING RETURNING hash
  ), erased AS (
    INSERT INTO reclaim.erased_before (id)
      SELECT (l.claims ->> 'customer')::uuid FROM line l JOIN added USING (hash) WHERE l.claims ->> 'kind' = 'erasure'
      UNION SELECT u.id::uuid FROM line l JOIN added USING (hash), jsonb_array_elements_text(l.claims -> 'users') AS u (id)
        WHERE l.claims ->> 'kind' = 'erasure'
      ORDER BY 1 ON CONFLICT DO NOTHING RETURNING id
  ), ended AS (
    INSERT INTO reclaim.gate_ended (kind, id) SELECT k.kind, e.id FROM erased e CROSS JOIN (VALUES ('customer'), ('user')) AS k (kind)
  )
  SELECT count(*) INTO v_new FROM added;
  IF v_new > 0 THEN
    UPDATE reclaim.installation SET restored_at = clock_timestamp() WHERE restored_at IS NULL;
  END IF;
  RETURN v_new;
END
$$;
REVOKE ALL ON FUNCTION reclaim.journal_lose FROM PUBLIC;
