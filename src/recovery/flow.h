/* Private to src/recovery: one request to cleanup-orphaned-user on its way through a step.
 *
 *   1. cleanup.c        on the loop: reads the request and asks the limits
 *   2. run_step.c       on a worker: runs the step, request_codes.c or validate_and_cleanup.c
 *   3. promised_mail.c  on the work engine's thread, for a code: the result of its mail
 *   4. answer.c         writes the answer */
#ifndef RECOVERY_FLOW_H
#define RECOVERY_FLOW_H

#include "base/clock.h"
#include "recovery/audit.h"
#include "recovery/body.h"
#include "recovery/cleanup.h"
#include "recovery/withdraw_code.h"

struct tx;

/* The most a step's transaction, and with it the address's lock, may last. */
#define FLOW_NS (30 * NS_PER_S)
/* How long a step waits for a lock that another program holds: the product's rows and tables must not keep a connection of
 * this pool waiting. */
#define CLEANUP_LOCK_MOST_MS 500
#define CLEANUP_LOCK_LEAST_MS 100

/* First steps that share a transaction, and how many such transactions run at a time: they leave connections of the lane to
 * second steps and probes. */
#define REQUESTS_MOST 32
#define REQUESTS_IN_FLIGHT 3

/* How a step ended: one of the contract's errors, or */
enum outcome { CODE_SENT = 100, USER_DELETED };

struct flow {
    struct ticket ticket;
    struct job job;
    struct batch_item together; /* with other first steps */
    struct mail_waiter waiter;
    struct cleanup *context;
    struct request *rq;
    enum body_step step;
    struct str email;
    enum language language;        /* of the mail */
    struct body_problems problems; /* of a malformed request */
    struct code code;              /* as typed, in the second step */
    bool proven;                   /* it was the right one; `stored` is what it was compared with */
    struct stored_code {
        struct digest hash;
        struct code_salt salt;
        char user_id[37];
        int64_t log_id;
        char created_at[32]; /* of the code, and of the log's row */
    } stored;
    struct audit_subject subject;
    bool locked;
    bool blocked;          /* refused with 005 since rows of another table keep the user from being deleted */
    enum err err;          /* of a step that failed */
    struct pg_fault fault; /* the same, as the database told it */
    int outcome;           /* enum outcome, or enum cleanup_error; 0 until it is decided */
    /* Values of a success: */
    char expires_at[32], user_id[37];
    const char *classification;
    int64_t log_id;
    /* The mail of a code: */
    struct work_item *item; /* promised in the transaction */
    bool revocable;         /* the answer is a success that may still be replaced; then its outcome is counted later */
    struct code_withdrawal withdrawal;
};

extern const char *const step_names[]; /* by enum body_step, for the log and metrics */

/* The steps, on a worker. ERR_CONFLICT has them run again; any other failure is the contract's fault. The first runs for up
 * to REQUESTS_MOST requests at once, and succeeds or fails for all of them. */
enum err request_codes(struct flow *const *flows, size_t count, struct pg *pg);
enum err validate_and_cleanup(struct flow *f, struct pg *pg);

/* cleanup.c: the rate-limit headers of a second step, once its outcome is known. */
void flow_limit_headers(struct flow *f);

/* candidate.c: the address's lock, the user and its ownership. */
struct candidate {
    char user_id[37];
    bool verified;
    int refusal; /* 0, or the cleanup_error that ends the step */
};
/* The first statement of a transaction: takes the address's lock, or fails and with it the rest of the trip. */
struct pg_call candidate_try_lock(const struct flow *f);
/* Counts the lock as held; candidate_unlocked() when the step is over. */
void candidate_locked(struct flow *f);
void candidate_unlocked(struct flow *f);
/* For tx_wait_for_locks: ends before a release of the answer, a fifth of the hold in reserve, so that the time of a 009 does
 * not tell that a row was locked. */
int candidate_lock_ms(const struct flow *f);
/* Whether one of the calls failed because a lock was not granted. */
bool candidate_lock_denied(const struct pg_call *calls, size_t count);
/* Reads a row of orphan_statements.candidates: the user, and whether it may be deleted. */
enum err candidate_read(const struct pg_call *found, int row, struct candidate *ret) MUST_CHECK;
/* Whether the trip asks for foreign keys that stop a deletion: when there are any, or it is time to look again. Then the
 * call for an array of addresses, and what it found for this one, read after candidate_read(). */
bool candidate_asks_keys(struct cleanup *context);
struct pg_call candidate_find_keys(const struct cleanup *context, const char *addresses);
void candidate_read_keys(struct flow *f, const struct pg_call *found, struct candidate *ret);
/* Whether the call that deletes failed since another row refers to the user, or to one that goes with it. */
bool candidate_key_violated(const struct pg_call *deletion);
/* Observes how long lock, user and ownership took. */
void candidate_checked(const struct flow *f, int64_t began_ns);

/* validate_and_cleanup.c: the user of f->stored and what it owns, both kept from changing until the transaction ends; then
 * the deletion, which commits. Both know the flow by f->subject alone: an operator's has no request. */
enum err orphan_lock_and_read(struct flow *f, struct tx *tx, struct candidate *ret) MUST_CHECK;
enum err orphan_delete(struct flow *f, struct tx *tx, struct candidate *who) MUST_CHECK;

/* run_step.c: hands the flow to a worker; it is answered from there. */
void flow_run_step(struct flow *f, struct pool *pool);
struct batch *flow_batch_requests(struct cleanup *context, struct pool *pool) MUST_CHECK;

/* promised_mail.c: mail_waiter.report of a flow. */
struct mail_revocable *flow_mail_result(struct mail_waiter *waiter, enum mail_result result);

/* refusals.c: refusals in reclaim.auth_cleanup_log. */
/* Ends the step with a refusal, an enum cleanup_error: writes its row and, when the code was right, restores its try. In the
 * step's transaction, if there is one and it can still be committed. */
enum err flow_refuse(struct flow *f, struct pg *pg, struct tx *tx, int error) MUST_CHECK;
/* The row of a refusal, for a transaction of the caller's. */
struct pg_call flow_refusal(const struct flow *f, int error);
/* The same for a step that failed, as far as the connection allows. */
void flow_log_fault(struct flow *f, struct pg *pg, enum err e);
/* Writes the answer to a flow whose ticket is refused. */
void flow_write_limited(struct flow *f);
/* Answers a flow that a limit refuses: the first of its key within a minute has a row in the log, all are counted. */
void flow_refuse_limited(struct flow *f);
/* Answers and counts a malformed request. */
void flow_refuse_malformed(struct flow *f);

/* answer.c. The request must not be touched after an answer. */
void flow_answer(struct flow *f);
void flow_answer_fault(struct flow *f, enum err e);
/* Writes the refusal that replaces a success whose mail every provider refused. */
void flow_write_mail_failed(struct flow *f);
void flow_count_outcome(enum body_step step, int outcome);

#endif
