-- Stores the rows that Reclaim wrote when it certified erasures, 500 in a transaction, without signing, hashing or a journal. Measured
-- by bench/proof.js.
\set ON_ERROR_STOP on
SET search_path = pg_catalog;
CREATE SCHEMA wanted;
CREATE TABLE wanted.certificates AS SELECT row_number() OVER (ORDER BY id) AS n, * FROM reclaim.erasure_certificates;
CREATE TABLE wanted.leaves AS SELECT row_number() OVER (ORDER BY position) AS n, * FROM reclaim.sealed_leaves;
CREATE TABLE wanted.lines AS SELECT row_number() OVER (ORDER BY l.id) AS n, l.*, e.customer_id FROM reclaim.journal_lines l
  LEFT JOIN reclaim.erasures e ON e.journal_hash = l.hash;
CREATE UNIQUE INDEX ON wanted.certificates (n);
CREATE UNIQUE INDEX ON wanted.leaves (n);
CREATE UNIQUE INDEX ON wanted.lines (n);
TRUNCATE reclaim.erasure_certificates, reclaim.sealed_leaves, reclaim.sealed_heads, reclaim.journal_lines;
UPDATE reclaim.erasures SET journal_hash = NULL, journaled = false, certificate_id = NULL, completed_at = NULL, rescan_at = NULL;
VACUUM (FULL, ANALYZE) reclaim.erasures;
ANALYZE wanted.certificates, wanted.leaves, wanted.lines;
CHECKPOINT;
CREATE PROCEDURE wanted.store() LANGUAGE plpgsql AS $$
DECLARE
  v_count constant bigint := (SELECT max(n) FROM wanted.certificates);
  v_size constant bigint := 500;
  v_share constant numeric := (SELECT max(n) FROM wanted.leaves)::numeric / v_count;
  v_lines constant numeric := (SELECT max(n) FROM wanted.lines)::numeric / v_count;
BEGIN
  FOR v_from IN 1 .. v_count BY v_size LOOP
    INSERT INTO reclaim.journal_lines (hash, line, kind)
      SELECT hash, line, kind FROM wanted.lines WHERE n >= ceil(v_from * v_lines) AND n < ceil((v_from + v_size) * v_lines) ORDER BY n;
    UPDATE reclaim.erasures e SET journal_hash = l.hash FROM wanted.lines l
      WHERE l.n >= ceil(v_from * v_lines) AND l.n < ceil((v_from + v_size) * v_lines) AND e.customer_id = l.customer_id;
    COMMIT;
    UPDATE reclaim.erasures e SET journaled = true WHERE NOT e.journaled AND e.journal_hash IS NOT NULL;
    COMMIT;
    INSERT INTO reclaim.erasure_certificates (certificate_id, customer_id, fact, jws, settled_at, completed_at)
      SELECT certificate_id, customer_id, fact, jws, settled_at, completed_at FROM wanted.certificates
        WHERE n >= v_from AND n < v_from + v_size ORDER BY n;
    INSERT INTO reclaim.sealed_leaves (position, source, fact_id, hash)
      SELECT position, source, fact_id, hash FROM wanted.leaves
        WHERE n >= ceil(v_from * v_share) AND n < ceil((v_from + v_size) * v_share) ORDER BY n;
    COMMIT;
    UPDATE reclaim.erasures e SET completed_at = c.completed_at, certificate_id = c.certificate_id, rescan_at = c.completed_at + interval '1 hour'
      FROM wanted.certificates c WHERE c.n >= v_from AND c.n < v_from + v_size AND e.customer_id = c.customer_id;
    COMMIT;
  END LOOP;
END
$$;
