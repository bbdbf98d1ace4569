/* The audit of clean-ups; addresses and networks only as keyed hashes.
 *
 * reclaim.auth_cleanup_log has a row for each request for a code, pending until the deletion completes it or its mail fails,
 * and a row for each refusal. reclaim.auth_cleanup_events has what happened, each in the same statement: steps, mails, and
 * counts of refusals by a limit. */
#ifndef RECOVERY_AUDIT_H
#define RECOVERY_AUDIT_H

#include "pg/pg.h"
#include "recovery/contract.h"

/* A request, as it is written to the log. */
struct audit_subject {
    const char *correlation_id, *step;
    char email_hash[DIGEST_HEX_LEN + 1], ip_hash[DIGEST_HEX_LEN + 1];
};

/* Why a step failed; NULL for what is not known. Nothing in it is personal: PostgreSQL's own sentences may quote values. */
struct audit_fault {
    const char *sqlstate, *constraint, *sentence;
};

/* A refusal: a row of its own. `code_log_id` is the row of the code that it is about, 0 for none; `fault` may be NULL. */
struct pg_call audit_failed(const struct audit_subject *who, enum cleanup_error error, int64_t code_log_id,
                            const struct audit_fault *fault);
/* The outcome of an earlier request, in its pending row. That row and the code are written by one transaction and have the
 * same created_at, which leads to the row's partition. */
struct pg_call audit_completed(const struct audit_subject *who, int64_t log_id, const char *created_at,
                               const char *classification);
struct pg_call audit_mail_failed(int64_t log_id);
/* Counted refusals; the JSON is refusal_counts.c's. */
struct pg_call audit_refusals(const char *json);

/* Deletes rows older than so many milliseconds, a few thousand at a time. */
enum err audit_prune(struct pg *pg, int64_t retention_ms, int64_t deadline_ns) MUST_CHECK;

extern const struct statement *const audit_statements[];
extern const size_t audit_statement_count;
extern const struct statement audit_mails_ended; /* for work_config.record */
extern const struct statement audit_trace;       /* $1 correlation id or null, $2 email hash or null */

#endif
