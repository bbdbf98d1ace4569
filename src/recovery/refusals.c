/* Refusals in reclaim.auth_cleanup_log: in the step's transaction, after a fault, and of requests that a limit refused. */
#include "base/clock.h"
#include "base/log.h"
#include "limits/headers.h"
#include "pg/tx.h"
#include "recovery/flow.h"
#include "recovery/statements.h"

#define REFUSALS_LOGGED_PER_S 100
#define LOG_NS NS_PER_S

/* A refusal's row and, when the code was right, its try restored. Returns the number of calls. */
static size_t write_refusal(struct flow *f, enum cleanup_error error, struct pg_call calls[2])
{
    calls[0] = audit_failed(&f->subject, error);
    calls[1] = (struct pg_call){.ask = &cleanup_restore_try,
                                .args = {pg_text(f->subject.email_hash), pg_i64(f->stored.log_id)}};
    return f->proven ? 2 : 1;
}

enum err flow_refuse(struct flow *f, struct pg *pg, struct tx *tx, int error)
{
    struct pg_call calls[2];
    size_t count = write_refusal(f, (enum cleanup_error)error, calls);
    f->outcome = error;
    if (tx && error != CLEANUP_BUSY)
        return tx_commit(tx, calls, count);
    tx_cleanup(&tx); /* a lock that was denied has ended the transaction already */
    return pg_trip(pg, calls, count, f->job.deadline_ns);
}

void flow_log_fault(struct flow *f, struct pg *pg)
{
    struct pg_call calls[2];
    size_t count = write_refusal(f, CLEANUP_FAULT, calls);
    if (pg_trip(pg, calls, count, clock_ns() + LOG_NS))
        log_warn("failure not logged in the database", F_STR("sqlstate", calls[0].sqlstate));
}

/* A flood of refusals must not become a flood of writes. */
static bool may_log_limited(struct cleanup *context)
{
    int64_t second = clock_ns() / NS_PER_S;
    if (atomic_exchange(&context->logging_second, second) != second)
        atomic_store(&context->refusals_logged, 0);
    return atomic_fetch_add(&context->refusals_logged, 1) < REFUSALS_LOGGED_PER_S;
}

static enum err run_log_limited(struct job *job, struct pg *pg)
{
    struct pg_call refused = audit_failed(&OWNER_OF(job, struct flow, job)->subject, CLEANUP_RATE_LIMITED);
    return pg_ask(pg, &refused, job->deadline_ns);
}

static void limited_logged(struct job *job, enum err e)
{
    (void)e; /* the refusal is sent without its row, too */
    struct request *rq = OWNER_OF(job, struct flow, job)->rq;
    reply_send(rq, rq->reply.status);
}

void flow_refuse_limited(struct flow *f)
{
    struct request *rq = f->rq;
    int64_t seconds = limit_retry_after_s(&f->ticket);
    flow_count_outcome(f->step, CLEANUP_RATE_LIMITED);
    contract_refuse_limited(rq, f->context->contract, limit_wait_text(rq->arena, seconds), seconds);
    reply_unhold_when_crowded(rq);
    struct pool *pool = atomic_load(&f->context->pool);
    if (f->step != BODY_MALFORMED && pool && may_log_limited(f->context)) {
        f->job = (struct job){run_log_limited, limited_logged, clock_ns() + LOG_NS, rq->correlation_id};
        if (pool_submit(pool, &f->job) == OK)
            return;
    }
    reply_send(rq, rq->reply.status);
}
