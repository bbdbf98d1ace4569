-- Has every gate forget what it knows of users who became members of a customer or are members no more, as fast as it reads
-- a freeze. After a statement, whose trigger names its rows: OLD removed, NEW added; before a TRUNCATE. What other programs
-- write gets its audit rows here; Reclaim's own requests write theirs, which also tell of what was refused.
CREATE OR REPLACE FUNCTION reclaim.members_announce() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_users uuid[];
  v_actor record := reclaim.change_actor();
BEGIN
  IF v_actor.kind = 'sql' AND TG_OP IN ('INSERT', 'UPDATE') THEN
    INSERT INTO reclaim.customer_log (customer_id, action, actor, actor_role, outcome, detail)
      SELECT customer_id, 'member_add', 'sql', v_actor.role, 'done', user_id::text FROM added;
  END IF;
  IF v_actor.kind = 'sql' AND TG_OP IN ('DELETE', 'UPDATE') THEN
    INSERT INTO reclaim.customer_log (customer_id, action, actor, actor_role, outcome, detail)
      SELECT customer_id, 'member_remove', 'sql', v_actor.role, 'done', user_id::text FROM removed;
  END IF;
  IF TG_OP = 'INSERT' THEN
    v_users := ARRAY(SELECT DISTINCT user_id FROM added);
  ELSIF TG_OP = 'DELETE' THEN
    v_users := ARRAY(SELECT DISTINCT user_id FROM removed);
  ELSIF TG_OP = 'TRUNCATE' THEN
    v_users := ARRAY(SELECT DISTINCT user_id FROM reclaim.customer_members);
  ELSE
    v_users := ARRAY(
      (SELECT user_id FROM (SELECT customer_id, user_id FROM removed EXCEPT SELECT customer_id, user_id FROM added) AS gone)
      UNION
      (SELECT user_id FROM (SELECT customer_id, user_id FROM added EXCEPT SELECT customer_id, user_id FROM removed) AS come));
  END IF;
  IF cardinality(v_users) > 0 THEN
    INSERT INTO reclaim.gate_ended (kind, id) SELECT 'user', one FROM unnest(v_users) AS one;
    PERFORM pg_notify('reclaim_customers', '');
  END IF;
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION reclaim.members_announce FROM PUBLIC;
