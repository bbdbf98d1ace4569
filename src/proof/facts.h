/* How each table's rows are written as facts. The text is what a leaf hashes: a JSON array with the name of the
 * source and the columns that never change. */
#ifndef PROOF_FACTS_H
#define PROOF_FACTS_H

/* In UTC, as JSON writes a timestamp: to_char() would write years before Christ as years after it, and infinity as null. */
#define FACT_TIME(column) "pg_catalog.timezone('UTC', " column ")"

/* clang-format off */
/* Of reclaim.customer_log l; its detail is emptied when the customer is deleted. */
#define FACT_OF_CUSTOMER \
    "pg_catalog.json_build_array('customer', l.id, l.customer_id, l.action, l.actor, l.actor_id, l.actor_role," \
    " l.outcome, l.correlation_id, " FACT_TIME("l.created_at") ")::text"
/* Of reclaim.auth_cleanup_events l */
#define FACT_OF_CLEANUP \
    "pg_catalog.json_build_array('cleanup', l.id, l.log_id, l.correlation_id, l.email_hash, l.network_hash, l.kind," \
    " l.outcome, l.detail, l.sqlstate, l.constraint_name, l.count, " FACT_TIME("l.counted_from") ", " \
    FACT_TIME("l.created_at") ")::text"
/* Of reclaim.receipt_facts l */
#define FACT_OF_RECEIPT \
    "pg_catalog.json_build_array('receipt', l.id, l.customer_id, l.participant, l.kind, l.status, l.rows," \
    " l.late_rows, " FACT_TIME("l.first_tried_at") ", " FACT_TIME("l.done_at") ", " FACT_TIME("l.late_at") "," \
    " l.reason, l.how, l.reported_by, " FACT_TIME("l.created_at") ")::text"
/* clang-format on */
/* Of reclaim.erasure_certificates l: the claims themselves, so that a certificate proves its own leaf. */
#define FACT_OF_CERTIFICATE "l.fact"

#define FACT_HASH(fact) "pg_catalog.sha256('\\x00'::bytea || pg_catalog.convert_to(" fact ", 'UTF8'))"

#endif
