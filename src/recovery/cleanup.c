#include "recovery/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metrics.h"
#include "limits/headers.h"
#include "pg/tx.h"
#include "recovery/statements.h"

/* The most a step's transaction, and with it the address's lock, may last. */
#define FLOW_NS (30 * NS_PER_S)
#define REFUSALS_LOGGED_PER_S 100

METRIC_COUNTER(requests, "reclaim_cleanup_requests_total", "Requests to cleanup-orphaned-user.", "step");
METRIC_COUNTER(outcomes, "reclaim_cleanup_outcomes_total", "How they ended: ok, or the error's number.", "step",
               "outcome");
METRIC_HISTOGRAM(step_time, "reclaim_cleanup_step_seconds", "From a request's last byte until its step was decided.",
                 metric_seconds, "step");

METRIC_GAUGE(locks_held, "reclaim_cleanup_locks_held", "Addresses this instance holds the lock of.");
METRIC_HISTOGRAM(check_time, "reclaim_cleanup_orphan_check_seconds", "Lock, user and ownership, looked up in one trip.",
                 metric_seconds);

static const char *const step_names[] = {
    [BODY_MALFORMED] = "malformed", [BODY_REQUEST_CODE] = "request-code", [BODY_VALIDATE] = "validate-and-cleanup"};

struct pg_call cleanup_try_lock(const struct flow *f)
{
    return (struct pg_call){.ask = &cleanup_lock, .args = {pg_text(f->email.at)}};
}

void cleanup_locked(struct flow *f)
{
    gauge_add(&locks_held, !f->locked);
    f->locked = true;
}

bool cleanup_lock_denied(const struct pg_call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(calls[i].sqlstate, "55P03") == 0)
            return true;
    return false;
}

enum err cleanup_judge(const struct pg_call *found, struct candidate *ret)
{
    bool sees_all = found->rows == 1 && pg_get_bool(found, 0, 0), registered = sees_all && !pg_is_null(found, 0, 1);
    bool banned = registered && pg_get_bool(found, 0, 3);
    if (!sees_all || (registered && pg_is_null(found, 0, 4)))
        ret->refusal = CLEANUP_FAULT; /* ownership that cannot be seen is not ownership that is not there */
    else if (!registered)
        ret->refusal = CLEANUP_UNKNOWN_USER;
    else if (banned || pg_get_bool(found, 0, 4))
        ret->refusal = CLEANUP_NOT_ORPHANED;
    if (!registered)
        return OK;
    ret->verified = pg_get_bool(found, 0, 2);
    return str_copy(pg_get(found, 0, 1), ret->user_id, sizeof ret->user_id);
}

void cleanup_checked(int64_t began_ns)
{
    histogram_observe(&check_time, (double)(clock_ns() - began_ns) / (double)NS_PER_S);
}

/* Answering */

static void tell_success(struct flow *f, int outcome)
{
    struct request *rq = f->rq;
    const struct contract *contract = f->context->contract;
    AUTO(buf) struct buf out = buf_new(2048);
    struct json_writer w = json_to(&out);
    json_open(&w, '{');
    json_key(&w, "success");
    json_bool(&w, true);
    json_key(&w, "correlationId");
    json_str(&w, str_of(rq->correlation_id));
    json_key(&w, "data");
    json_open(&w, '{');
    json_key(&w, "step");
    json_str(&w, outcome == CODE_SENT ? STR("code-sent") : STR("user-deleted"));
    json_key(&w, "message");
    json_str(&w, str_of(outcome == CODE_SENT ? contract->code_sent : contract->user_deleted));
    json_key(&w, "correlationId");
    json_str(&w, str_of(rq->correlation_id));
    if (outcome == CODE_SENT) {
        json_key(&w, "expiresAt");
        json_str(&w, str_of(f->expires_at));
    } else {
        json_key(&w, "deletedUserId");
        json_str(&w, str_of(f->user_id));
        json_key(&w, "orphanClassification");
        json_str(&w, str_of(f->classification));
    }
    json_close(&w, '}');
    json_close(&w, '}');
    reply_body(rq, "application/json", arena_copy(rq->arena, buf_str(&out)));
    rq->reply.status = 200;
}

/* What is told where nobody may learn who exists: the first step always worked, the second only with the right code. */
static int told_uniformly(struct flow *f)
{
    if (f->step == BODY_VALIDATE)
        return f->outcome == USER_DELETED ? USER_DELETED : CLEANUP_WRONG_CODE;
    /* By the clock of the request for everyone: the database's may differ, and it was read for orphans only. */
    int64_t arrived_us = clock_wall_us() - (clock_ns() - f->rq->arrived_ns) / NS_PER_US;
    clock_format_ms(arrived_us + f->context->contract->code_life_s * 1000000, f->expires_at);
    return CODE_SENT;
}

static void count_outcome(enum body_step step, int outcome)
{
    char number[12] = "ok";
    if (outcome < CODE_SENT)
        snprintf(number, sizeof number, "%03d", outcome);
    counter_add(&outcomes, 1, step_names[step], number);
}

/* The step is over; the request is not to be touched afterwards. */
static void answer(struct flow *f)
{
    if (!f->regret)
        count_outcome(f->step, f->outcome);
    histogram_observe(&step_time, (double)(clock_ns() - f->rq->arrived_ns) / (double)NS_PER_S, step_names[f->step]);

    int told = f->context->uniform ? told_uniformly(f) : f->outcome;
    if (told >= CODE_SENT)
        tell_success(f, told);
    else
        contract_refuse(f->rq, f->context->contract, (enum cleanup_error)told);
    reply_send(f->rq, f->rq->reply.status);
}

static void answer_fault(struct flow *f, enum err e)
{
    log_warn("cleanup failed", F_STR("step", step_names[f->step]), F_STR("error", err_name(e)));
    counter_add(&outcomes, 1, step_names[f->step], "006");
    contract_refuse(f->rq, f->context->contract, CLEANUP_FAULT);
    reply_send(f->rq, f->rq->reply.status);
}

/* Mail */

static struct flow *flow_of_job(struct job *job)
{
    return OWNER_OF(job, struct flow, job);
}

static enum err run_take_back(struct job *job, struct pg *pg)
{
    struct flow *f = flow_of_job(job);
    return request_code_take_back(f->who.email_hash, f->log_id, pg, job->deadline_ns);
}

static void taken_back(struct job *job, enum err e)
{
    struct flow *f = flow_of_job(job);
    if (e) /* the code stays in the table, unknown to anyone, until it expires */
        log_warn("code not taken back", F_STR("error", err_name(e)));
    answer(f);
}

/* A success that is parked until its instant, and becomes 008 when every provider has refused the mail before that. It
 * outlives the flow, and the request. */
struct regret {
    struct mail_regret mail;
    struct second_thought *second;
    struct job job;
    struct cleanup *context;
    char email_hash[DIGEST_HEX_LEN + 1];
    int64_t log_id;
};

static void regret_free(struct regret *r)
{
    second_thought_free(r->second);
    free(r);
}

static enum err run_regret(struct job *job, struct pg *pg)
{
    struct regret *r = OWNER_OF(job, struct regret, job);
    return request_code_take_back(r->email_hash, r->log_id, pg, job->deadline_ns);
}

static void regretted(struct job *job, enum err e)
{
    if (e)
        log_warn("code not taken back", F_STR("error", err_name(e)));
    regret_free(OWNER_OF(job, struct regret, job));
}

static bool take_back(struct mail_regret *mail)
{
    struct regret *r = OWNER_OF(mail, struct regret, mail);
    bool in_time = second_thought_choose(r->second);
    count_outcome(BODY_REQUEST_CODE, in_time ? (int)CLEANUP_MAIL_FAILED : (int)CODE_SENT);
    if (!in_time) {
        regret_free(r);
        return false;
    }
    r->job = (struct job){run_regret, regretted, clock_ns() + FLOW_NS, NULL};
    enum err e = pool_submit(atomic_load(&r->context->pool), &r->job);
    if (e)
        regretted(&r->job, e);
    return true;
}

static void keep(struct mail_regret *mail)
{
    count_outcome(BODY_REQUEST_CODE, CODE_SENT);
    regret_free(OWNER_OF(mail, struct regret, mail));
}

/* Prepares the refusal beside the success; NULL when the answer is not held, or memory is short. */
static struct regret *regret_new(struct flow *f)
{
    struct request *rq = f->rq;
    struct regret *r = rq->hold.until_ns > clock_ns() ? calloc(1, sizeof *r) : NULL;
    if (!r)
        return NULL;
    *r = (struct regret){.mail = {rq->hold.until_ns, take_back, keep}, .context = f->context, .log_id = f->log_id};
    memcpy(r->email_hash, f->who.email_hash, sizeof r->email_hash);
    if (f->context->uniform)
        tell_success(f, told_uniformly(f));
    else
        contract_refuse(rq, f->context->contract, CLEANUP_MAIL_FAILED);
    if (!(r->second = reply_second_thought(rq))) {
        free(r);
        return NULL;
    }
    return r;
}

static struct mail_regret *give_answer(struct mail_answer *mail, enum mail_verdict verdict)
{
    struct flow *f = OWNER_OF(mail, struct flow, answer);
    if (verdict == MAIL_GOES_ON) {
        struct regret *regret = f->regret = regret_new(f);
        answer(f);
        return regret ? &regret->mail : NULL;
    }
    if (verdict == MAIL_DELIVERED) {
        answer(f);
        return NULL;
    }
    f->outcome = CLEANUP_MAIL_FAILED;
    f->job.run = run_take_back;
    f->job.done = taken_back;
    f->job.deadline_ns = clock_ns() + FLOW_NS;
    if (pool_submit(atomic_load(&f->context->pool), &f->job))
        answer(f);
    return NULL;
}

enum err cleanup_compose(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns, struct mail *ret)
{
    struct cleanup *cleanup = context;
    struct str user_id, salt_hex, correlation_id;
    struct code_salt salt;
    if (json_get_str(payload, "user_id", &user_id) || json_get_str(payload, "salt", &salt_hex) ||
        json_get_str(payload, "correlation_id", &correlation_id) || code_salt_parse(salt_hex, &salt) ||
        !str_is_uuid(user_id) || !str_is_uuid(correlation_id))
        return ERR_INPUT;
    struct pg_call call = {.ask = &cleanup_read_mail, .args = {pg_text(user_id.at), pg_text(salt_hex.at)}};
    enum err e = pg_ask(pg, &call, deadline_ns);
    if (e)
        return e;
    int64_t left_s = call.rows ? pg_get_i64(&call, 0, 1) : 0;
    if (left_s <= 0)
        return ERR_MISSING; /* expired, replaced, or the user is gone */

    const struct code_shape *shape = &cleanup->contract->code;
    struct code code = code_derive(cleanup->code_keys, shape, &salt, user_id.at);
    *ret = (struct mail){.template = MAIL_CLEANUP_CODE,
                         .minutes = (int)((left_s + 59) / 60),
                         .expires_us = clock_wall_us() + left_s * 1000000};
    code_show(shape, &code, ret->code);
    secret_wipe(&code, sizeof code);
    if ((e = str_copy(pg_get(&call, 0, 0), ret->to, sizeof ret->to)))
        return e;
    return str_copy(correlation_id, ret->reference, sizeof ret->reference);
}

/* On a worker */

/* A refusal's row in the log and, when the code was right, its try given back. Returns how many calls that takes. */
static size_t write_refusal(struct flow *f, enum cleanup_error error, struct pg_call calls[2])
{
    calls[0] = audit_failed(&f->who, error);
    calls[1] =
        (struct pg_call){.ask = &cleanup_give_back_try, .args = {pg_text(f->who.email_hash), pg_i64(f->stored.log_id)}};
    return f->proven ? 2 : 1;
}

enum err cleanup_refuse(struct flow *f, struct pg *pg, struct tx *tx, int error)
{
    struct pg_call calls[2];
    size_t count = write_refusal(f, (enum cleanup_error)error, calls);
    f->outcome = error;
    if (tx && error != CLEANUP_BUSY)
        return tx_commit(tx, calls, count);
    tx_cleanup(&tx); /* a lock that was denied has ended the transaction already */
    return pg_trip(pg, calls, count, f->job.deadline_ns);
}

static enum err run_step(struct job *job, struct pg *pg)
{
    struct flow *f = flow_of_job(job);
    enum err e = f->step == BODY_REQUEST_CODE ? request_code(f, pg) : validate_and_cleanup(f, pg);
    gauge_add(&locks_held, -(double)f->locked);
    f->locked = false;
    if (e && e != ERR_CONFLICT && pg_is_up(pg)) {
        struct pg_call calls[2];
        size_t count = write_refusal(f, CLEANUP_FAULT, calls);
        if (pg_trip(pg, calls, count, clock_ns() + NS_PER_S))
            log_warn("failure not logged in the database", F_STR("sqlstate", calls[0].sqlstate));
    }
    return e;
}

/* The mail's fate answers the request, from another thread and maybe before this returns: what is still needed here must
 * not be the flow's. */
static void send_mail(struct flow *f)
{
    struct work_item *item = f->item;
    struct pg_call promised = f->promised;
    mail_send(&item, &promised, &f->answer);
}

static void step_done(struct job *job, enum err e)
{
    struct flow *f = flow_of_job(job);
    if (e)
        answer_fault(f, e);
    else if (f->item)
        send_mail(f);
    else
        answer(f);
}

static enum err run_log_refusal(struct job *job, struct pg *pg)
{
    struct pg_call refused = audit_failed(&flow_of_job(job)->who, CLEANUP_RATE_LIMITED);
    return pg_ask(pg, &refused, job->deadline_ns);
}

static void refusal_logged(struct job *job, enum err e)
{
    (void)e; /* a refusal stands without its row */
    struct flow *f = flow_of_job(job);
    reply_send(f->rq, f->rq->reply.status);
}

/* Letting in */

/* A flood of refusals must not become a flood of writes. */
static bool may_log_refusal(struct cleanup *context)
{
    int64_t second = clock_ns() / NS_PER_S;
    if (atomic_exchange(&context->logging_second, second) != second)
        atomic_store(&context->refusals_logged, 0);
    return atomic_fetch_add(&context->refusals_logged, 1) < REFUSALS_LOGGED_PER_S;
}

static void refuse_limited(struct flow *f)
{
    int64_t seconds = limit_retry_after_s(&f->ticket);
    counter_add(&outcomes, 1, step_names[f->step], "003");
    contract_refuse_limited(f->rq, f->context->contract, limit_wait_text(f->rq->arena, seconds), seconds);
    reply_unhold_when_crowded(f->rq);
    struct pool *pool = atomic_load(&f->context->pool);
    if (f->step != BODY_MALFORMED && pool && may_log_refusal(f->context)) {
        f->job = (struct job){run_log_refusal, refusal_logged, clock_ns() + NS_PER_S, f->rq->correlation_id};
        if (pool_submit(pool, &f->job) == OK)
            return;
    }
    reply_send(f->rq, f->rq->reply.status);
}

static void decided(struct ticket *ticket)
{
    struct flow *f = OWNER_OF(ticket, struct flow, ticket);
    struct request *rq = f->rq;
    struct pool *pool = atomic_load(&f->context->pool);
    limit_headers(rq, ticket);
    if (ticket->verdict == ADMISSION_REFUSED) {
        refuse_limited(f);
        return;
    }
    if (ticket->verdict == ADMISSION_FAILED || !pool) {
        answer_fault(f, ticket->fault);
        return;
    }
    if (f->step == BODY_MALFORMED) {
        contract_refuse(rq, f->context->contract, f->context->contract->malformed);
        reply_send(rq, rq->reply.status);
        return;
    }
    f->job = (struct job){run_step, step_done, rq->arrived_ns + FLOW_NS, rq->correlation_id};
    enum err e = pool_submit(pool, &f->job);
    if (e)
        answer_fault(f, e);
}

static void read_request(struct flow *f)
{
    struct body body;
    if (body_read_cleanup(f->rq->arena, &f->context->contract->code, f->rq->body, &body) == OK) {
        f->step = body.step;
        f->email = body.email;
        f->code = body.code;
    }
    if (*body.correlation_id)
        request_correlate(f->rq, str_of(body.correlation_id));
    secret_wipe(&body, sizeof body);
}

/* Who is counted and logged: by keyed hashes only. */
static void identify(struct flow *f)
{
    struct cleanup *context = f->context;
    struct counted ip = counted_by_ip(TIER_IP, context->identifier_key, &f->rq->client);
    ticket_count_in(context->admission, &f->ticket, counted_globally());
    ticket_count_in(context->admission, &f->ticket, ip);
    if (f->step == BODY_MALFORMED)
        return;
    struct counted email = counted_by_email(f->step == BODY_REQUEST_CODE ? TIER_EMAIL : TIER_EMAIL_VALIDATE,
                                            context->identifier_key, f->email);
    if (f->step == BODY_REQUEST_CODE || context->contract->limits_validation)
        ticket_count_in(context->admission, &f->ticket, email);
    f->who.correlation_id = f->rq->correlation_id;
    f->who.step = step_names[f->step];
    digest_hex(&email.subject, f->who.email_hash);
    digest_hex(&ip.subject, f->who.ip_hash);
}

/* When the mail's fate must be known. A fifth of the hold is kept back: an engine that the machine keeps waiting, or a
 * code that has to be taken back, must not make orphans' answers later than everyone else's. */
static int64_t answer_by_ns(const struct request *rq)
{
    return rq->hold.until_ns ? rq->hold.until_ns - rq->hold.step_ns / 5 : rq->arrived_ns;
}

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
    f->ticket.decided = decided;
    f->answer = (struct mail_answer){answer_by_ns(rq), give_answer};
    read_request(f);
    counter_add(&requests, 1, step_names[f->step]);
    identify(f);
    admission_ask(context->admission, &f->ticket);
}

void cleanup_open(struct cleanup *context, struct pool *pool, struct engine *engine)
{
    context->engine = engine;
    atomic_store(&context->pool, pool);
}
