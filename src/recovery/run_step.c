/* A step on a worker, from the pool's queue to the answer or the mail. */
#include "recovery/flow.h"

#define WAITING_MOST 4096

static enum err run_validation(struct job *job, struct pg *pg);
static void validated(struct job *job, enum err e);
static enum err run_requests(void *context, struct pg *pg, struct batch_item **items, size_t count);
static void requested(void *context, struct batch_item *item, enum err e);
static void fail(struct flow *f, struct pg *pg, enum err e);
static void send_mail(struct flow *f);

/* 1. From the loop or the batching thread. First steps share transactions. */
void flow_run_step(struct flow *f, struct pool *pool)
{
    struct batch *requests = atomic_load(&f->context->requests);
    f->job = (struct job){run_validation, validated, f->rq->arrived_ns + FLOW_NS, f->rq->correlation_id};
    enum err e = f->step == BODY_VALIDATE ? pool_submit(pool, &f->job) : batch_add(requests, &f->together);
    if (e)
        flow_answer_fault(f, e);
}

/* 2. The second step, on a worker. */
static enum err run_validation(struct job *job, struct pg *pg)
{
    struct flow *f = OWNER_OF(job, struct flow, job);
    pg_forget_fault(pg);
    enum err e = validate_and_cleanup(f, pg);
    candidate_unlocked(f);
    if (e && e != ERR_CONFLICT)
        fail(f, pg, e);
    return e;
}

/* 3. On the same worker, once a conflict has been retried. */
static void validated(struct job *job, enum err e)
{
    struct flow *f = OWNER_OF(job, struct flow, job);
    if (e)
        flow_answer_fault(f, e);
    else
        flow_answer(f);
}

static void fail(struct flow *f, struct pg *pg, enum err e)
{
    f->err = e;
    f->fault = *pg_fault(pg);
    if (pg_is_up(pg))
        flow_log_fault(f, pg, e);
}

static size_t undecided(struct batch_item **items, size_t count, struct flow **ret)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        struct flow *f = OWNER_OF(items[i], struct flow, together);
        if (!f->outcome && !f->err)
            ret[n++] = f;
    }
    return n;
}

/* 2. First steps, on a worker. What stops all of them may be due to one: then each is run alone. */
static enum err run_requests(void *context, struct pg *pg, struct batch_item **items, size_t count)
{
    (void)context;
    struct flow *flows[REQUESTS_MOST];
    count = undecided(items, count, flows);
    pg_forget_fault(pg);
    enum err e = request_codes(flows, count, pg);
    if (!e || e == ERR_CONFLICT || !pg_is_up(pg))
        return e;
    for (size_t i = 0; i < count; i++) {
        if (count > 1) {
            pg_forget_fault(pg);
            e = request_codes(&flows[i], 1, pg);
        }
        if (e == ERR_CONFLICT)
            return e;
        if (e)
            fail(flows[i], pg, e);
    }
    return OK;
}

/* 3. On the same worker, for each of them. */
static void requested(void *context, struct batch_item *item, enum err e)
{
    (void)context;
    struct flow *f = OWNER_OF(item, struct flow, together);
    if (f->err || (e && !f->outcome))
        flow_answer_fault(f, f->err ? f->err : e);
    else if (f->item)
        send_mail(f);
    else
        flow_answer(f);
}

/* 4. For a code: the mail's result answers the request, from the engine's thread and maybe before mail_send returns, so
 * that its argument is copied out of the flow. */
static void send_mail(struct flow *f)
{
    struct work_item *item = f->item;
    mail_send(&item, &f->waiter);
}

struct batch *flow_batch_requests(struct cleanup *context, struct pool *pool)
{
    return batch_new(&(struct batch_config){.pool = pool,
                                            .most = REQUESTS_MOST,
                                            .capacity = WAITING_MOST,
                                            .in_flight = REQUESTS_IN_FLIGHT,
                                            .limit_ns = FLOW_NS,
                                            .context = context,
                                            .run = run_requests,
                                            .done = requested});
}
