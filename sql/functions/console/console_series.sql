-- How many customers were frozen, recovered and deleted in each of p_count intervals that end now: one number each, the oldest first.
CREATE OR REPLACE FUNCTION reclaim.console_series(p_step interval, p_count integer) RETURNS json
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
BEGIN
  RETURN (WITH per AS (SELECT p_count - 1 - floor(extract(epoch FROM v_now - l.created_at) / extract(epoch FROM p_step))::integer AS place,
      count(*) FILTER (WHERE l.action = 'freeze') AS freezes, count(*) FILTER (WHERE l.action = 'recover') AS recoveries,
      count(*) FILTER (WHERE l.action IN ('delete', 'expire')) AS deletions
    FROM reclaim.customer_log l WHERE l.created_at > v_now - p_count * p_step AND l.outcome = 'done'
      AND l.action IN ('freeze', 'recover', 'delete', 'expire') GROUP BY 1)
  SELECT json_build_object('step_seconds', extract(epoch FROM p_step)::integer,
    'freezes', json_agg(coalesce(p.freezes, 0) ORDER BY n), 'recoveries', json_agg(coalesce(p.recoveries, 0) ORDER BY n),
    'deletions', json_agg(coalesce(p.deletions, 0) ORDER BY n))
  FROM generate_series(0, p_count - 1) AS n LEFT JOIN per p ON p.place = n);
END
$$;
REVOKE ALL ON FUNCTION reclaim.console_series FROM PUBLIC;
