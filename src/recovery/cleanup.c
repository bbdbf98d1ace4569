#include "recovery/cleanup.h"

#include "base/clock.h"
#include "base/metrics.h"
#include "limits/headers.h"
#include "recovery/flow.h"

METRIC_COUNTER(requests, "reclaim_cleanup_requests_total", "Requests to cleanup-orphaned-user.", "step");

static void read_request(struct flow *f);
static void count_in(struct flow *f);
static int64_t mail_due_ns(const struct request *rq);
static void limits_decided(struct ticket *ticket);

/* 1. On the loop: reads the request and asks the limits. */
void cleanup_handle(struct request *rq)
{
    struct cleanup *context = rq->route->context;
    struct flow *f = request_work(rq, sizeof *f);
    if (!f) {
        contract_refuse(rq, context->contract, CLEANUP_FAULT);
        reply_send(rq, rq->reply.status);
        return;
    }
    f->context = context;
    f->rq = rq;
    f->ticket.decided = limits_decided;
    f->language =
        language_choose(request_header(rq, "Accept-Language"), mail_language(post_design(context->post), STR("")));
    f->waiter = (struct mail_waiter){mail_due_ns(rq), flow_mail_result};
    read_request(f);
    counter_add(&requests, 1, step_names[f->step]);
    count_in(f);
    admission_ask(context->admission, &f->ticket);
}

static void read_request(struct flow *f)
{
    struct body body;
    if (body_read_cleanup(f->rq->arena, &f->context->contract->code, f->rq->body, &body) == OK) {
        f->step = body.step;
        f->email = body.email;
        f->code = body.code;
    } else {
        f->problems = body.problems;
    }
    if (*body.correlation_id)
        request_correlate(f->rq, str_of(body.correlation_id));
    secret_wipe(&body, sizeof body);
}

/* The limits that count this request, and the keyed hashes that limits and log know it by. A body that cannot be read is
 * counted for its client only, so that nobody uses up what all share with requests that cost nothing. */
static void count_in(struct flow *f)
{
    struct cleanup *context = f->context;
    const struct digest *key = context->identifier_key;
    bool validates = f->step == BODY_VALIDATE;
    if (f->step != BODY_MALFORMED)
        ticket_count_in(context->admission, &f->ticket,
                        counted_for_everyone(validates ? TIER_GLOBAL_VALIDATE : TIER_GLOBAL));
    ticket_count_client(context->admission, &f->ticket, TIER_IP, key, &f->rq->client);
    if (f->step == BODY_MALFORMED)
        return;
    struct counted email = counted_by_email(validates ? TIER_EMAIL_VALIDATE : TIER_EMAIL, key, f->email);
    struct counted network = counted_by_ip(TIER_IP, key, &f->rq->client);
    if (!validates)
        ticket_count_in(context->admission, &f->ticket, email);
    else if (context->contract->limits_validation)
        ticket_count_softly(context->admission, &f->ticket, email); /* strangers must not keep the owner out */
    f->subject.correlation_id = f->rq->correlation_id;
    f->subject.step = step_names[f->step];
    digest_hex(&email.subject, f->subject.email_hash);
    digest_hex(&network.subject, f->subject.ip_hash);
}

/* The time by which the mail's result must be known. A fifth of the hold is kept in reserve: an engine that gets no
 * processor, or a code that has to be taken back, must not make the answers for orphans later than the others. */
static int64_t mail_due_ns(const struct request *rq)
{
    return rq->hold.until_ns ? rq->hold.until_ns - rq->hold.step_ns / 5 : rq->arrived_ns;
}

/* Whether the headers depend on the code, too: an admitted second step. */
static bool has_soft_tier(const struct flow *f)
{
    return f->step == BODY_VALIDATE && f->ticket.verdict == ADMISSION_GRANTED;
}

/* A success tells nothing about the tries of others. Refusals are alike, whether the code was right or not. */
void flow_limit_headers(struct flow *f)
{
    if (!has_soft_tier(f))
        return;
    if (f->outcome == CLEANUP_RATE_LIMITED)
        ticket_refuse_softly(&f->ticket);
    else if (f->outcome != USER_DELETED)
        ticket_show_soft(&f->ticket);
    limit_headers(f->rq, &f->ticket);
}

/* 2. On the batching thread, or still on the loop: the limits' decision; then a worker goes on (run_step.c). */
static void limits_decided(struct ticket *ticket)
{
    struct flow *f = OWNER_OF(ticket, struct flow, ticket);
    struct pool *pool = atomic_load(&f->context->pool);
    if (!has_soft_tier(f))
        limit_headers(f->rq, ticket);
    if (ticket->verdict == ADMISSION_REFUSED) {
        flow_refuse_limited(f);
    } else if (ticket->verdict == ADMISSION_FAILED || !pool) {
        flow_answer_fault(f, ticket->fault);
    } else if (f->step == BODY_MALFORMED) {
        flow_refuse_malformed(f);
    } else {
        flow_run_step(f, pool);
    }
}

enum err cleanup_open(struct cleanup *context, struct pool *pool, struct engine *engine)
{
    struct batch *first_steps = flow_batch_requests(context, pool);
    if (!first_steps)
        return ERR_MEMORY;
    atomic_store(&context->requests, first_steps);
    context->engine = engine;
    refusal_counts_open(&context->refusals, pool, engine);
    atomic_store(&context->pool, pool);
    return OK;
}

void cleanup_close(struct cleanup *context)
{
    refusal_counts_flush(&context->refusals);
}

void cleanup_free(struct cleanup *context)
{
    batch_free(atomic_exchange(&context->requests, NULL));
}
