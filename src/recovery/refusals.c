/* Refusals in the audit: in the step's transaction, after a fault, and of requests that a limit refused. */
#include "base/clock.h"
#include "base/log.h"
#include "limits/headers.h"
#include "pg/tx.h"
#include "recovery/flow.h"
#include "recovery/statements.h"

#define LOG_NS NS_PER_S

/* When the code was right. */
static struct pg_call restore_try(const struct flow *f)
{
    return (struct pg_call){
        .ask = &cleanup_restore_try,
        .args = {pg_text(f->subject.email_hash), pg_i64(f->stored.log_id), pg_text(f->subject.ip_hash)}};
}

static struct audit_fault fault_with(const struct pg_fault *of, const char *sentence)
{
    return (struct audit_fault){.sqlstate = *of->sqlstate ? of->sqlstate : NULL,
                                .constraint = *of->constraint ? of->constraint : NULL,
                                .sentence = sentence};
}

struct pg_call flow_refusal(const struct flow *f, int error)
{
    struct audit_fault kept = fault_with(&f->fault, "Rows of another table keep the user from being deleted.");
    return audit_failed(&f->subject, (enum cleanup_error)error, f->stored.log_id, f->blocked ? &kept : NULL);
}

enum err flow_refuse(struct flow *f, struct pg *pg, struct tx *tx, int error)
{
    f->fault = *pg_fault(pg); /* of a deletion that a foreign key stopped */
    struct pg_call calls[] = {flow_refusal(f, error), restore_try(f)};
    size_t count = f->proven ? 2 : 1;
    f->outcome = error;
    if (tx && error != CLEANUP_BUSY)
        return tx_commit(tx, calls, count);
    tx_cleanup(&tx); /* a lock that was denied has ended the transaction already */
    return pg_trip(pg, calls, count, f->job.deadline_ns);
}

static const char *sentence_of(enum err e)
{
    switch (e) {
    case ERR_DATABASE:
        return "The database refused a statement, or changed other rows than expected.";
    case ERR_TIMEOUT:
        return "The step took longer than it may.";
    case ERR_MEMORY:
        return "There was no memory left.";
    default:
        return "The step could not be finished.";
    }
}

void flow_log_fault(struct flow *f, struct pg *pg, enum err e)
{
    struct audit_fault fault = fault_with(&f->fault, sentence_of(e));
    struct pg_call calls[] = {audit_failed(&f->subject, CLEANUP_FAULT, f->stored.log_id, &fault), restore_try(f)};
    if (pg_trip(pg, calls, f->proven ? 2 : 1, clock_ns() + LOG_NS))
        log_warn("failure not logged in the database", F_STR("sqlstate", calls[0].sqlstate),
                 F_STR("constraint", calls[0].constraint));
}

static enum err run_log_limited(struct job *job, struct pg *pg)
{
    struct pg_call refused = audit_failed(&OWNER_OF(job, struct flow, job)->subject, CLEANUP_RATE_LIMITED, 0, NULL);
    return pg_ask(pg, &refused, job->deadline_ns);
}

static void limited_logged(struct job *job, enum err e)
{
    (void)e; /* the refusal is sent without its row, too */
    struct request *rq = OWNER_OF(job, struct flow, job)->rq;
    reply_send(rq, rq->reply.status);
}

/* Whether it is the first of its key within a minute. */
static bool count_limited(struct flow *f)
{
    const struct standing *by = ticket_tightest(&f->ticket);
    return by && refusal_counts_add(&f->context->refusals, by->counted, CLEANUP_RATE_LIMITED, f->rq->correlation_id);
}

void flow_write_limited(struct flow *f)
{
    int64_t seconds = limit_retry_after_s(&f->ticket);
    contract_refuse_limited(f->rq, f->context->contract, limit_wait_text(f->rq->arena, seconds), seconds);
}

void flow_refuse_limited(struct flow *f)
{
    struct request *rq = f->rq;
    flow_count_outcome(f->step, CLEANUP_RATE_LIMITED);
    flow_write_limited(f);
    reply_unhold_when_crowded(rq);
    struct pool *pool = atomic_load(&f->context->pool);
    if (count_limited(f) && f->step != BODY_MALFORMED && pool) {
        f->job = (struct job){run_log_limited, limited_logged, clock_ns() + LOG_NS, rq->correlation_id};
        if (pool_submit(pool, &f->job) == OK)
            return;
    }
    reply_send(rq, rq->reply.status);
}

void flow_refuse_malformed(struct flow *f)
{
    const struct contract *contract = f->context->contract;
    struct counted client = counted_by_ip(TIER_IP, f->context->identifier_key, &f->rq->client);
    flow_count_outcome(f->step, (int)contract->malformed);
    (void)!refusal_counts_add(&f->context->refusals, client, (int)contract->malformed, f->rq->correlation_id);
    contract_refuse_malformed(f->rq, contract, &f->problems);
    reply_send(f->rq, f->rq->reply.status);
}
