/* A step on a worker, from the pool's queue to the answer or the mail. */
#include "recovery/flow.h"

static enum err run(struct job *job, struct pg *pg);
static void done(struct job *job, enum err e);
static void send_mail(struct flow *f);

static struct flow *flow_of(struct job *job)
{
    return OWNER_OF(job, struct flow, job);
}

/* 1. From the loop or the batching thread. */
void flow_run_step(struct flow *f, struct pool *pool)
{
    f->job = (struct job){run, done, f->rq->arrived_ns + FLOW_NS, f->rq->correlation_id};
    enum err e = pool_submit(pool, &f->job);
    if (e)
        flow_answer_fault(f, e);
}

/* 2. On a worker. */
static enum err run(struct job *job, struct pg *pg)
{
    struct flow *f = flow_of(job);
    pg_forget_fault(pg);
    enum err e = f->step == BODY_REQUEST_CODE ? request_code(f, pg) : validate_and_cleanup(f, pg);
    candidate_unlocked(f);
    if (e)
        f->fault = *pg_fault(pg);
    if (e && e != ERR_CONFLICT && pg_is_up(pg))
        flow_log_fault(f, pg, e);
    return e;
}

/* 3. On the same worker, once a conflict has been retried. */
static void done(struct job *job, enum err e)
{
    struct flow *f = flow_of(job);
    if (e)
        flow_answer_fault(f, e);
    else if (f->item)
        send_mail(f);
    else
        flow_answer(f);
}

/* 4. For a code: the mail's result answers the request, from the engine's thread and maybe before mail_send returns, so
 * that its arguments are copied out of the flow. */
static void send_mail(struct flow *f)
{
    struct work_item *item = f->item;
    struct pg_call promised = f->promised;
    mail_send(&item, &promised, &f->waiter);
}
