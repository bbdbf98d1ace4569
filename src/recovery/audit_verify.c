#include "recovery/audit_verify.h"

#define DAY_S (INT64_C(24) * 3600)

/* clang-format off */
#define EVENTS "reclaim.auth_cleanup_events e WHERE e.kind IN ('request-code', 'validate-and-cleanup') AND "
#define IS_REFUSAL "starts_with(e.outcome, 'ORPHAN_CLEANUP_')"
#define IS_DELETION \
    "l.error_code IS NULL AND d.email_hash = l.email_hash AND d.created_at = l.updated_at" \
    " AND d.detail IS NOT DISTINCT FROM l.orphan_classification"
/* clang-format on */

/* A refusal is written with its event; so is the row of a code, until the deletion or the end of its mail changes it. When its mail failed
 * before the answer, the row says so before the event. The event of a refusal names the row of the code that it was about, else its
 * own. Rows from before step 19, which brought the events, are not compared. $1: what is older may be gone by retention. */
static const struct statement audit_changed_log = {
    .name = "audit_changed_log",
    .sql =
        "WITH sent AS (SELECT DISTINCT ON (e.log_id) e.* FROM " EVENTS
        "e.outcome = 'code-sent' ORDER BY e.log_id, e.id),"
        " deleted AS (SELECT DISTINCT ON (e.log_id) e.* FROM " EVENTS
        "e.outcome = 'user-deleted' ORDER BY e.log_id, e.id),"
        " unmailed AS (SELECT DISTINCT e.log_id FROM reclaim.auth_cleanup_events e WHERE e.kind = 'mail'"
        " AND e.outcome IN ('failed', 'expired')),"
        " refused AS (SELECT e.correlation_id, e.created_at, e.kind, e.outcome, e.email_hash, e.network_hash,"
        " CASE WHEN c.log_id IS NULL THEN e.log_id END AS own_id, count(*) AS count FROM (SELECT * FROM " EVENTS
            IS_REFUSAL ") e LEFT JOIN sent c ON c.log_id = e.log_id GROUP BY 1, 2, 3, 4, 5, 6, 7)"
        " SELECT l.id FROM (SELECT r.*, pg_catalog.row_number() OVER (PARTITION BY r.correlation_id, r.created_at,"
        " r.step, r.error_code, r.email_hash, r.ip_hash ORDER BY r.id) AS turn FROM reclaim.auth_cleanup_log r"
        " WHERE NOT EXISTS (SELECT FROM reclaim.schema_migrations a JOIN reclaim.schema_migrations b ON b.version = 19"
        " WHERE a.version = 4 AND r.created_at BETWEEN a.applied_at AND b.applied_at)) l"
        " LEFT JOIN sent c ON c.log_id = l.id LEFT JOIN deleted d ON d.log_id = l.id"
        " LEFT JOIN unmailed m ON m.log_id = l.id LEFT JOIN refused f ON f.correlation_id = l.correlation_id"
        " AND f.created_at = l.created_at AND f.kind = l.step AND f.outcome = l.error_code"
        " AND f.email_hash = l.email_hash AND f.network_hash IS NOT DISTINCT FROM l.ip_hash"
        " AND (f.own_id IS NULL OR f.own_id = l.id OR l.created_at <= pg_catalog.to_timestamp($1::int8))"
        " WHERE NOT coalesce(CASE WHEN l.status = 'failed' AND f.count >= l.turn"
        " THEN l.updated_at = l.created_at AND l.orphan_classification IS NULL"
        " WHEN l.step <> 'request-code' THEN l.status = 'completed' AND l.ip_hash IS NULL"
        " AND l.created_at = l.updated_at AND d.correlation_id = l.correlation_id AND " IS_DELETION
        " ELSE c.correlation_id = l.correlation_id AND c.created_at = l.created_at AND c.email_hash = l.email_hash"
        " AND c.network_hash IS NOT DISTINCT FROM l.ip_hash AND CASE l.status"
        " WHEN 'pending' THEN d.id IS NULL AND m.log_id IS NULL AND l.error_code IS NULL"
        " AND l.orphan_classification IS NULL AND l.updated_at = l.created_at"
        " WHEN 'failed' THEN d.id IS NULL AND l.error_code = 'ORPHAN_CLEANUP_008'"
        " AND l.orphan_classification IS NULL AND l.updated_at > l.created_at"
        " WHEN 'completed' THEN " IS_DELETION " END END, false) LIMIT 10000",
    .params = 1,
    .columns = "id:int8",
};

/* $1: as above. */
static const struct statement audit_removed_log = {
    .name = "audit_removed_log",
    .sql = "SELECT e.id FROM " EVENTS "e.created_at > pg_catalog.to_timestamp($1::int8)"
           " AND e.outcome IN ('code-sent', 'user-deleted') AND NOT EXISTS (SELECT FROM reclaim.auth_cleanup_log l"
           " WHERE l.id = e.log_id)"
           " UNION ALL SELECT e.id FROM " EVENTS "e.created_at > pg_catalog.to_timestamp($1::int8) AND " IS_REFUSAL
           " AND NOT EXISTS (SELECT FROM reclaim.auth_cleanup_log l WHERE l.correlation_id = e.correlation_id"
           " AND l.created_at = e.created_at AND l.step = e.kind AND l.error_code = e.outcome) LIMIT 10000",
    .params = 1,
    .columns = "id:int8",
};

const struct statement *const audit_verify_statements[] = {&audit_changed_log, &audit_removed_log};
const size_t audit_verify_statement_count = COUNT_OF(audit_verify_statements);

/* A row is removed before its events, some of which are younger. */
enum err audit_verify(struct log_verifier *v)
{
    int64_t from_s = v->gone_before_s + DAY_S;
    struct pg_call calls[] = {{.ask = &audit_changed_log, .args = {pg_i64(from_s)}},
                              {.ask = &audit_removed_log, .args = {pg_i64(from_s)}}};
    enum err e = verify_ask(v, calls, COUNT_OF(calls));
    if (e)
        return e;
    for (int i = 0; i < calls[0].rows; i++)
        verify_report(v, "changed: row %s of auth_cleanup_log, of which its events say something else",
                      pg_get(&calls[0], i, 0).at);
    for (int i = 0; i < calls[1].rows; i++)
        verify_report(v, "removed: the row of auth_cleanup_log that row %s of auth_cleanup_events is about",
                      pg_get(&calls[1], i, 0).at);
    return OK;
}
