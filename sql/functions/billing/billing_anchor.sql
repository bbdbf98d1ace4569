-- The day of the month, in UTC, on which calendar periods begin that count from an instant.
CREATE OR REPLACE FUNCTION reclaim.billing_anchor(p_at timestamptz) RETURNS smallint
LANGUAGE sql IMMUTABLE
AS $$ SELECT pg_catalog.date_part('day', p_at AT TIME ZONE 'UTC')::smallint $$;
REVOKE ALL ON FUNCTION reclaim.billing_anchor FROM PUBLIC;
