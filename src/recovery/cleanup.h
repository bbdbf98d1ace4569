/* POST /functions/v1/cleanup-orphaned-user: prove a mailbox, delete the orphan.
 *
 * This file has what both steps share: reading a request, letting it in, answering. Each step is one linear function in a
 * file of its own, request_code.c and validate_and_cleanup.c. */
#ifndef RECOVERY_CLEANUP_H
#define RECOVERY_CLEANUP_H

#include "http/router.h"
#include "limits/admission.h"
#include "mail/mail.h"
#include "recovery/audit.h"
#include "recovery/body.h"
#include "recovery/contract.h"
#include "recovery/orphans.h"

struct tx;

struct cleanup {
    const struct contract *contract;
    const struct orphan_statements *orphans;
    const struct digest *identifier_key;
    const struct code_keys *code_keys;
    struct admission *admission;
    struct post *post;
    bool uniform; /* never tells whether an address exists */
    struct hold_rule hold;
    _Atomic(struct pool *) pool; /* NULL until the database is ready */
    struct engine *engine;
    atomic_int_fast64_t logging_second, refusals_logged; /* how many refusals were logged in which second */
};

/* The database and the work engine are ready. */
void cleanup_open(struct cleanup *context, struct pool *pool, struct engine *engine);

/* The handler; its route's context is a struct cleanup. */
void cleanup_handle(struct request *rq);

/* How a step ended: one of the contract's errors, or */
enum outcome { CODE_SENT = 100, USER_DELETED };

/* One request on its way through a step. */
struct flow {
    struct ticket ticket;
    struct job job;
    struct mail_answer answer;
    struct cleanup *context;
    struct request *rq;
    enum body_step step;
    struct str email;
    struct code code; /* what was typed, in the second step */
    bool proven;      /* it was the right one; `stored` is what it was compared with */
    struct stored_code {
        struct digest hash;
        struct code_salt salt;
        char user_id[37];
        int64_t log_id;
    } stored;
    struct audit_subject who;
    bool locked;
    int outcome; /* enum outcome, or enum cleanup_error */
    /* What a success tells. */
    char expires_at[32], user_id[37];
    const char *classification;
    int64_t log_id;
    struct work_item *item; /* the mail, promised */
    struct regret *regret;  /* the answer is a success that may still be taken back */
    struct pg_call promised;
};

/* The steps, on a worker. ERR_CONFLICT has them run again; any other failure is the contract's fault. */
enum err request_code(struct flow *f, struct pg *pg);
enum err validate_and_cleanup(struct flow *f, struct pg *pg);

/* What a step's transaction found out. */
struct candidate {
    char user_id[37];
    bool verified;
    int refusal; /* 0, or the cleanup_error that ends the flow */
};

/* The most a step waits for a lock that another program holds: rows and tables of the product are not the caller's to
 * keep a connection waiting for. */
#define CLEANUP_LOCK_MS 500

/* The first statement of a transaction: the address's lock, or no more of that trip. */
struct pg_call cleanup_try_lock(const struct flow *f);
/* Counts the lock as held until the step is over. */
void cleanup_locked(struct flow *f);
/* Whether one of the calls failed because a lock was not to be had. */
bool cleanup_lock_denied(const struct pg_call *calls, size_t count);
/* Reads the answer of orphan_statements.candidate: the user, and whether it may be deleted. */
enum err cleanup_judge(const struct pg_call *found, struct candidate *ret) MUST_CHECK;
/* Ends the step with a refusal, an enum cleanup_error: its row in the log and, when the code was right, its try back. In
 * the transaction that found out, if there is one and it can still be committed. */
enum err cleanup_refuse(struct flow *f, struct pg *pg, struct tx *tx, int error) MUST_CHECK;
/* How long finding out took, by the clock when it began. */
void cleanup_checked(int64_t began_ns);
/* Composes a code's mail for an item that was taken over; mail_settings.compose. The context is a struct cleanup. */
enum err cleanup_compose(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns, struct mail *ret);
/* Drops the code of a mail that every provider refused, and says so in the log. */
enum err request_code_take_back(const char *email_hash, int64_t log_id, struct pg *pg, int64_t deadline_ns);

extern const struct statement *const cleanup_statements[];
extern const size_t cleanup_statement_count;
/* Deletes codes that have expired. */
enum err cleanup_purge_codes(struct pg *pg, int64_t deadline_ns) MUST_CHECK;

#endif
