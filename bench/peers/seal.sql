-- Hashes the audit rows that Reclaim sealed and stores the leaves, 10,000 in a transaction, without a tree, heads or a journal. Measured
-- by bench/proof.js.
\set ON_ERROR_STOP on
SET search_path = pg_catalog;
TRUNCATE reclaim.sealed_leaves;
CHECKPOINT;
CREATE SCHEMA wanted;
CREATE PROCEDURE wanted.store() LANGUAGE plpgsql AS $$
DECLARE
  v_last bigint := 0;
  v_place bigint := 0;
  v_count bigint;
BEGIN
  LOOP
    WITH fact AS (
      SELECT l.id, sha256('\x00'::bytea || convert_to(json_build_array('customer', l.id, l.customer_id, l.action, l.actor, l.actor_id,
          l.actor_role, l.outcome, l.correlation_id, timezone('UTC', l.created_at))::text, 'UTF8')) AS hash
        FROM reclaim.customer_log l WHERE l.id > v_last ORDER BY l.id LIMIT 10000
    ), placed AS (
      INSERT INTO reclaim.sealed_leaves (position, source, fact_id, hash)
        SELECT v_place - 1 + row_number() OVER (ORDER BY id), 'customer', id, hash FROM fact RETURNING fact_id)
    SELECT count(*), max(fact_id) INTO v_count, v_last FROM placed;
    v_place := v_place + v_count;
    COMMIT;
    EXIT WHEN v_count < 10000;
  END LOOP;
END
$$;
