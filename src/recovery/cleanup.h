/* POST /functions/v1/cleanup-orphaned-user: prove a mailbox, delete the orphan. flow.h lists its files in order. */
#ifndef RECOVERY_CLEANUP_H
#define RECOVERY_CLEANUP_H

#include "http/router.h"
#include "limits/admission.h"
#include "mail/mail.h"
#include "pg/batch.h"
#include "recovery/audit.h"
#include "recovery/contract.h"
#include "recovery/orphans.h"
#include "recovery/refusal_counts.h"

struct cleanup {
    const struct contract *contract;
    const struct orphan_statements *orphans;
    const struct digest *identifier_key;
    const struct code_keys *code_keys;
    struct admission *admission;
    struct post *post;
    bool uniform; /* no answer reveals whether an address exists */
    struct hold_rule hold;
    _Atomic(struct pool *) pool;      /* NULL until the database is ready */
    _Atomic(struct batch *) requests; /* first steps; there when `pool` is */
    struct engine *engine;
    struct refusal_counts refusals;
    /* cache: blocking-keys */
    struct {
        atomic_bool any;              /* foreign keys of other tables can stop a deletion */
        atomic_int_fast64_t until_ns; /* when to look again, if there are none */
    } keys;
};

/* The database and the work engine are ready. */
enum err cleanup_open(struct cleanup *context, struct pool *pool, struct engine *engine) MUST_CHECK;

/* No more requests come, and the pool still runs: writes what was counted. */
void cleanup_close(struct cleanup *context);
void cleanup_free(struct cleanup *context); /* after the pool has stopped */

/* The handler; its route's context is a struct cleanup. */
void cleanup_handle(struct request *rq);

/* The mail with a code, for mail_settings.features. */
struct mail_templates cleanup_mails(struct cleanup *context);

/* A deletion by an operator. */
struct operator_deletion {
    const struct orphan_statements *orphans; /* after orphan_statements_lock() */
    const struct digest *identifier_key;
    const char *user_id, *correlation_id;
    const char *step;   /* in the log: "orphans-delete" */
    const char *reason; /* up to OPERATOR_REASON_MAX bytes; NULL: none */
};
#define OPERATOR_REASON_MAX 1000

/* Deletes the account as step 2 does with a right code: the same locks, the same checks, one transaction with its row in the
 * log. *ret_refusal is 0 when it is deleted, or the enum cleanup_error that step 2 would answer; then nothing is changed.
 * ERR_CONFLICT: may be repeated. */
enum err cleanup_delete_by_operator(struct pg *pg, const struct operator_deletion *in, int64_t deadline_ns,
                                    int *ret_refusal) MUST_CHECK;
/* Deletes reasons older than so many milliseconds. */
enum err cleanup_prune_reasons(struct pg *pg, int64_t retention_ms, int64_t deadline_ns) MUST_CHECK;

extern const struct statement *const cleanup_statements[];
extern const size_t cleanup_statement_count;
/* Deletes codes that have expired. */
enum err cleanup_purge_codes(struct pg *pg, int64_t deadline_ns) MUST_CHECK;

#endif
