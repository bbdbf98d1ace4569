-- What every deletion erases and keeps, in words that anyone may read: labels, but no names of tables and services. Participants
-- without a label are counted; Reclaim's own have one. Columns of adopted tables are kept by decision.
CREATE OR REPLACE FUNCTION reclaim.erasure_participants(p_backup_seconds bigint) RETURNS json
LANGUAGE sql STABLE SET search_path = pg_catalog
AS $$
  SELECT json_build_object(
    'items', coalesce((SELECT json_agg(json_build_object('name', one.name, 'label', one.label, 'outcome', one.outcome)
        ORDER BY one.outcome, one.label) FROM (
      SELECT DISTINCT CASE WHEN own.label IS NOT NULL THEN p.name END AS name, coalesce(nullif(p.label, ''), own.label) AS label,
        CASE WHEN p.kind = 'table' AND p.soft_delete_column IS NULL AND p.scrub_columns <> '{}' THEN 'emptied'
          ELSE 'deleted' END AS outcome
      FROM reclaim.cascade_participants p LEFT JOIN (VALUES ('reclaim.calls', 'Calls'), ('reclaim.charges', 'Charges'),
        ('reclaim.adjustments', 'Corrections of charges')) AS own (name, label) USING (name)
      WHERE p.enabled AND (p.label <> '' OR own.label IS NOT NULL)) AS one), '[]'),
    'unnamed', (SELECT count(*) FROM reclaim.cascade_participants p
      WHERE p.enabled AND p.label = '' AND NOT starts_with(p.name, 'reclaim.')),
    'kept', coalesce((SELECT json_agg(DISTINCT replace(c.column_name, '_', ' ')) FROM reclaim.columns_list() c
      WHERE c.decision = 'keep'), '[]'),
    'grace_seconds', (SELECT extract(epoch FROM i.grace)::bigint FROM reclaim.installation i),
    'backup_retention_seconds', p_backup_seconds)
$$;
REVOKE ALL ON FUNCTION reclaim.erasure_participants FROM PUBLIC;
