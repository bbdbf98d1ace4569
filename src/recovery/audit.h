/* reclaim.auth_cleanup_log: requests and their outcomes; addresses only as keyed hashes. */
#ifndef RECOVERY_AUDIT_H
#define RECOVERY_AUDIT_H

#include "pg/pg.h"
#include "recovery/contract.h"

/* A request, as it is written to the log. */
struct audit_subject {
    const char *correlation_id, *step;
    char email_hash[DIGEST_HEX_LEN + 1], ip_hash[DIGEST_HEX_LEN + 1];
};

/* A refusal: a row of its own. */
struct pg_call audit_failed(const struct audit_subject *who, enum cleanup_error error);
/* The outcome of an earlier request, in its pending row. That row and the code are written by one transaction and have the
 * same created_at, which leads to the row's partition. */
struct pg_call audit_completed(int64_t log_id, const char *created_at, const char *classification);
struct pg_call audit_mail_failed(int64_t log_id);

/* Deletes rows older than so many milliseconds, a few thousand at a time. */
enum err audit_prune(struct pg *pg, int64_t retention_ms, int64_t deadline_ns) MUST_CHECK;

extern const struct statement *const audit_statements[];
extern const size_t audit_statement_count;
extern const struct statement audit_trace; /* $1 correlation id or null, $2 email hash or null */

#endif
