-- Begins the cool-downs of these lines of the journal again, as long as they had lasted.
CREATE OR REPLACE FUNCTION reclaim.replay_cooldowns(p_lines bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  INSERT INTO reclaim.address_cooldowns AS c (address_hash, ends_at)
    SELECT l.claims ->> 'keyed_address', max((l.claims ->> 'requested_at')::timestamptz + i.cooldown) AS ends_at
      FROM (SELECT split_part(n.line, E'\t', 1)::jsonb AS claims FROM reclaim.journal_lines n WHERE n.id = ANY (p_lines)) AS l
        JOIN reclaim.installation i ON i.cooldown IS NOT NULL
      WHERE l.claims ->> 'keyed_address' <> '' GROUP BY 1
      HAVING max((l.claims ->> 'requested_at')::timestamptz + i.cooldown) > reclaim.now() ORDER BY 1
    ON CONFLICT (address_hash) DO UPDATE SET ends_at = greatest(c.ends_at, excluded.ends_at);
END
$$;
REVOKE ALL ON FUNCTION reclaim.replay_cooldowns FROM PUBLIC;
