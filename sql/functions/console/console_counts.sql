-- The numbers beside the console's navigation: customers that are not deleted, frozen ones, dead letters, participants that fail.
CREATE OR REPLACE FUNCTION reclaim.console_counts() RETURNS json
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
BEGIN
  RETURN json_build_object(
    'customers', (SELECT count(*) FROM reclaim.customer_customers c WHERE c.status <> 'deleted'),
    'frozen', (SELECT count(*) FROM reclaim.customer_customers c WHERE c.status = 'frozen'),
    'dead', (SELECT count(*) FROM (SELECT FROM reclaim.event_returns LIMIT 100000) r)
      + (SELECT count(*) FROM (SELECT FROM reclaim.work_items w WHERE w.state = 'dead' LIMIT 100000) w),
    'failing', (SELECT count(DISTINCT r.participant) FROM reclaim.cascade_receipts r WHERE r.status = 'failed'));
END
$$;
REVOKE ALL ON FUNCTION reclaim.console_counts FROM PUBLIC;
