#include "recovery/audit.h"

#include "base/clock.h"

#define PRUNE_MOST 5000

static const struct statement insert_failed = {
    .name = "audit_insert_failed",
    .sql = "INSERT INTO reclaim.auth_cleanup_log (correlation_id, email_hash, ip_hash, step, status, error_code)"
           " VALUES ($1::uuid, $2, $3, $4, 'failed', 'ORPHAN_CLEANUP_' || lpad($5, 3, '0'))",
    .params = 5,
    .columns = "",
};

/* With its time, which leads to one partition. */
static const struct statement complete = {
    .name = "audit_complete",
    .sql = "UPDATE reclaim.auth_cleanup_log SET status = 'completed', orphan_classification = $2, updated_at = now()"
           " WHERE id = $1::int8 AND created_at = $3::text::timestamptz",
    .params = 3,
    .columns = "",
};

static const struct statement fail_mail = {
    .name = "audit_fail_mail",
    .sql =
        "UPDATE reclaim.auth_cleanup_log SET status = 'failed', error_code = 'ORPHAN_CLEANUP_008', updated_at = now()"
        " WHERE id = $1::int8 AND status = 'pending'",
    .params = 1,
    .columns = "",
};

/* The limit on the outer table leaves partitions out that hold nothing so old. */
static const struct statement prune = {
    .name = "audit_prune",
    .sql = "DELETE FROM reclaim.auth_cleanup_log WHERE (id, created_at) IN (SELECT id, created_at"
           " FROM reclaim.auth_cleanup_log WHERE created_at < now() - $1::int8 * interval '1 millisecond'"
           " ORDER BY created_at LIMIT $2::int8) AND created_at < now() - $1::int8 * interval '1 millisecond'",
    .params = 2,
    .columns = "",
};

const struct statement audit_trace = {
    .name = "audit_trace",
    .sql = "SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') AS created_at,"
           " to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') AS updated_at,"
           " correlation_id, step, status, error_code, orphan_classification FROM reclaim.auth_cleanup_log"
           " WHERE correlation_id = $1::uuid OR email_hash = $2 ORDER BY id",
    .params = 2,
    .columns = "created_at:text updated_at:text correlation_id:uuid step:text status:text error_code:text"
               " orphan_classification:text",
};

const struct statement *const audit_statements[] = {&insert_failed, &complete, &fail_mail, &prune, &audit_trace};
const size_t audit_statement_count = COUNT_OF(audit_statements);

struct pg_call audit_failed(const struct audit_subject *who, enum cleanup_error error)
{
    return (struct pg_call){.ask = &insert_failed,
                            .args = {pg_text(who->correlation_id), pg_text(who->email_hash), pg_text(who->ip_hash),
                                     pg_text(who->step), pg_i64((int64_t)error)}};
}

struct pg_call audit_completed(int64_t log_id, const char *created_at, const char *classification)
{
    return (struct pg_call){.ask = &complete, .args = {pg_i64(log_id), pg_text(classification), pg_text(created_at)}};
}

struct pg_call audit_mail_failed(int64_t log_id)
{
    return (struct pg_call){.ask = &fail_mail, .args = {pg_i64(log_id)}};
}

enum err audit_prune(struct pg *pg, int64_t retention_ms, int64_t deadline_ns)
{
    for (;;) {
        struct pg_call call = {.ask = &prune, .args = {pg_i64(retention_ms), pg_i64(PRUNE_MOST)}};
        enum err e = pg_ask(pg, &call, deadline_ns);
        if (e || call.rows < PRUNE_MOST)
            return e;
    }
}
