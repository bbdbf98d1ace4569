#include "recovery/audit.h"

#include "base/clock.h"

#define PRUNE_MOST 5000

#define ADD_EVENT                                                                                                      \
    " INSERT INTO reclaim.auth_cleanup_events (log_id, correlation_id, email_hash, network_hash, kind, outcome, "

static const struct statement insert_failed = {
    .name = "audit_insert_failed",
    .sql = "WITH log AS (INSERT INTO reclaim.auth_cleanup_log"
           "   (correlation_id, email_hash, ip_hash, step, status, error_code)"
           "   VALUES ($1::uuid, $2, $3, $4, 'failed', 'ORPHAN_CLEANUP_' || lpad($5, 3, '0')) RETURNING *)" ADD_EVENT
           "sqlstate, constraint_name, detail) SELECT coalesce($6::int8, l.id), l.correlation_id, l.email_hash,"
           "   l.ip_hash, l.step, l.error_code, $7, $8, $9 FROM log l",
    .params = 9,
    .columns = "",
};

/* With its time, which leads to one partition. */
static const struct statement complete = {
    .name = "audit_complete",
    .sql = "WITH log AS (UPDATE reclaim.auth_cleanup_log SET status = 'completed', orphan_classification = $2,"
           "   updated_at = now() WHERE id = $1::int8 AND created_at = $3::text::timestamptz AND status = 'pending'"
           "   RETURNING id)" ADD_EVENT
           "detail) SELECT l.id, $4::uuid, $5, $6, 'validate-and-cleanup', 'user-deleted', $2 FROM log l",
    .params = 6,
    .columns = "",
};

/* Before the answer; its event follows with the mail's end. */
static const struct statement fail_mail = {
    .name = "audit_fail_mail",
    .sql =
        "UPDATE reclaim.auth_cleanup_log SET status = 'failed', error_code = 'ORPHAN_CLEANUP_008', updated_at = now()"
        " WHERE id = $1::int8 AND status = 'pending'",
    .params = 1,
    .columns = "",
};

/* Mails that ended, in the transaction that removes their work items: $1 [{"payload","outcome","detail"}]. One that nobody
 * got takes its code with it, and the row of its request is failed; so is one whose code had expired when an instance took
 * the mail over. Where the code was replaced, the request is found by its ids, and never is that of the present code.
 *
 * Nothing that another program wrote into a payload makes the statement fail. Codes are locked before rows of the log, as
 * everywhere, and among themselves in the order of their hashes: `failed` joins `dropped` for the first. The array has the newest row found by its id: with LIMIT, PostgreSQL
 * may choose to read the whole log backwards. */
const struct statement audit_mails_ended = {
    .name = "audit_mails_ended",
    .sql = "WITH ended AS MATERIALIZED (SELECT m.payload->>'email_hash' AS email_hash,"
           "   CASE WHEN m.payload->>'correlation_id' ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'"
           "     THEN (m.payload->>'correlation_id')::uuid END AS correlation_id,"
           "   CASE WHEN m.payload->>'salt' ~ '^([0-9a-f]{2})*$' THEN decode(m.payload->>'salt', 'hex') END AS salt,"
           "   m.outcome, m.detail"
           "   FROM pg_catalog.jsonb_to_recordset($1::jsonb) AS m(payload jsonb, outcome text, detail text)"
           "   WHERE m.payload->>'template' = 'cleanup-code'),"
           " known AS MATERIALIZED (SELECT e.*, coalesce(c.log_id, l.id) AS log_id, c.log_id IS NOT NULL AS is_present,"
           "   e.outcome IN ('failed', 'expired') OR (e.outcome = 'unneeded' AND c.log_id IS NOT NULL) AS is_failed"
           "   FROM ended e LEFT JOIN reclaim.verification_codes c"
           "     ON c.email_hash = e.email_hash AND c.code_salt = e.salt"
           "   LEFT JOIN LATERAL (SELECT (array_agg(r.id ORDER BY r.id DESC))[1] AS id FROM reclaim.auth_cleanup_log r "
           "WHERE c.log_id IS NULL"
           "     AND r.correlation_id = e.correlation_id AND r.email_hash = e.email_hash AND r.step = 'request-code'"
           "     AND (r.error_code IS NULL OR r.error_code = 'ORPHAN_CLEANUP_008')"
           "     AND NOT EXISTS (SELECT FROM reclaim.verification_codes p"
           "       WHERE p.email_hash = r.email_hash AND p.log_id = r.id)) l ON true),"
           " held AS (SELECT c.email_hash, c.code_salt FROM reclaim.verification_codes c JOIN known k"
           "   ON c.email_hash = k.email_hash AND c.code_salt = k.salt WHERE k.is_failed AND k.is_present"
           "   ORDER BY c.email_hash FOR UPDATE OF c),"
           " dropped AS (DELETE FROM reclaim.verification_codes c USING held h WHERE c.email_hash = h.email_hash"
           "   AND c.code_salt = h.code_salt RETURNING c.log_id),"
           " failed AS (UPDATE reclaim.auth_cleanup_log l SET status = 'failed', error_code = 'ORPHAN_CLEANUP_008',"
           "   updated_at = now() FROM known k LEFT JOIN dropped d ON d.log_id = k.log_id WHERE k.is_failed AND l.id = "
           "k.log_id AND l.status = 'pending'),"
           " about_customers AS (INSERT INTO reclaim.customer_mails (customer_id, template, outcome, detail)"
           "   SELECT (m.payload->>'customer_id')::uuid, pg_catalog.\"left\"(m.payload->>'template', 100), m.outcome, "
           "m.detail"
           "   FROM pg_catalog.jsonb_to_recordset($1::jsonb) AS m(payload jsonb, outcome text, detail text)"
           "   WHERE m.payload->>'template' LIKE 'customer-%'"
           "     AND m.payload->>'customer_id' ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')" ADD_EVENT
           "detail) SELECT k.log_id, k.correlation_id, k.email_hash, NULL, 'mail', k.outcome, k.detail FROM known k"
           " UNION ALL SELECT NULL, CASE WHEN m.payload->>'correlation_id' ~ "
           "'^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'"
           "     THEN (m.payload->>'correlation_id')::uuid END, NULL, NULL, 'mail', m.outcome, m.detail"
           "   FROM pg_catalog.jsonb_to_recordset($1::jsonb) AS m(payload jsonb, outcome text, detail text)"
           "   WHERE m.payload->>'template' = 'sign-in-code'",
    .params = 1,
    .columns = "",
};

/* Refusals that were counted: $1 [{"correlation_id","email_hash","network_hash","outcome","detail","count","from_us"}]. */
static const struct statement count_refusals = {
    .name = "audit_count_refusals",
    .sql = ADD_EVENT
    "detail, count, counted_from) SELECT NULL, r.correlation_id, r.email_hash, r.network_hash, 'refusals',"
    "   r.outcome, r.detail, r.count, pg_catalog.to_timestamp(r.from_us / 1000000.0)"
    " FROM pg_catalog.jsonb_to_recordset($1::jsonb) AS r(correlation_id uuid, email_hash text,"
    "   network_hash text, outcome text, detail text, count int8, from_us int8)",
    .params = 1,
    .columns = "",
};

/* The limit on the outer table leaves partitions out that hold nothing so old. */
#define PRUNE(table)                                                                                                   \
    "DELETE FROM reclaim." table " WHERE (id, created_at) IN (SELECT id, created_at"                                   \
    " FROM reclaim." table " WHERE created_at < now() - $1::int8 * interval '1 millisecond'"                           \
    " ORDER BY created_at LIMIT $2::int8) AND created_at < now() - $1::int8 * interval '1 millisecond'"

static const struct statement prune_log = {
    .name = "audit_prune",
    .sql = PRUNE("auth_cleanup_log"),
    .params = 2,
    .columns = "",
};

static const struct statement prune_events = {
    .name = "audit_prune_events",
    .sql = PRUNE("auth_cleanup_events"),
    .params = 2,
    .columns = "",
};

const struct statement audit_trace = {
    .name = "audit_trace",
    .sql = "SELECT reclaim.rfc3339(t.at) AS at, t.kind, t.outcome, t.count, t.correlation_id, t.sqlstate,"
           " t.constraint_name, t.detail, t.network_hash, t.log_id, t.log_status, t.log_error,"
           " reclaim.rfc3339(t.log_updated_at) AS log_updated_at FROM reclaim.cleanup_trail($1::uuid, $2) t"
           " ORDER BY t.at, t.id",
    .params = 2,
    .columns = "at:text kind:text outcome:text count:int8 correlation_id:uuid sqlstate:text constraint_name:text"
               " detail:text network_hash:text log_id:int8 log_status:text log_error:text log_updated_at:text",
};

const struct statement *const audit_statements[] = {&insert_failed,  &complete,  &fail_mail,    &audit_mails_ended,
                                                    &count_refusals, &prune_log, &prune_events, &audit_trace};
const size_t audit_statement_count = COUNT_OF(audit_statements);

struct pg_call audit_failed(const struct audit_subject *who, enum cleanup_error error, int64_t code_log_id,
                            const struct audit_fault *fault)
{
    static const struct audit_fault none;
    fault = fault ? fault : &none;
    return (struct pg_call){.ask = &insert_failed,
                            .args = {pg_text(who->correlation_id), pg_text(who->email_hash), pg_text(who->ip_hash),
                                     pg_text(who->step), pg_i64((int64_t)error),
                                     code_log_id ? pg_i64(code_log_id) : pg_null(), pg_text_or_null(fault->sqlstate),
                                     pg_text_or_null(fault->constraint), pg_text_or_null(fault->sentence)}};
}

struct pg_call audit_completed(const struct audit_subject *who, int64_t log_id, const char *created_at,
                               const char *classification)
{
    return (struct pg_call){.ask = &complete,
                            .args = {pg_i64(log_id), pg_text(classification), pg_text(created_at),
                                     pg_text(who->correlation_id), pg_text(who->email_hash), pg_text(who->ip_hash)}};
}

struct pg_call audit_mail_failed(int64_t log_id)
{
    return (struct pg_call){.ask = &fail_mail, .args = {pg_i64(log_id)}};
}

struct pg_call audit_refusals(const char *json)
{
    return (struct pg_call){.ask = &count_refusals, .args = {pg_text(json)}};
}

static enum err prune(struct pg *pg, const struct statement *ask, int64_t retention_ms, int64_t deadline_ns)
{
    for (;;) {
        struct pg_call call = {.ask = ask, .args = {pg_i64(retention_ms), pg_i64(PRUNE_MOST)}};
        enum err e = pg_ask(pg, &call, deadline_ns);
        if (e || call.rows < PRUNE_MOST)
            return e;
    }
}

enum err audit_prune(struct pg *pg, int64_t retention_ms, int64_t deadline_ns)
{
    enum err e = prune(pg, &prune_log, retention_ms, deadline_ns);
    return e ? e : prune(pg, &prune_events, retention_ms, deadline_ns);
}
