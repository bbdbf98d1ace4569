/* What a step answers: the contract's success or refusal, or the one answer that reveals nothing about the address. */
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metrics.h"
#include "recovery/flow.h"

METRIC_COUNTER(outcomes, "reclaim_cleanup_outcomes_total", "How they ended: ok, or the error's number.", "step",
               "outcome");
METRIC_HISTOGRAM(step_time, "reclaim_cleanup_step_seconds", "From a request's last byte until its step was decided.",
                 metric_seconds, "step");

const char *const step_names[] = {
    [BODY_MALFORMED] = "malformed", [BODY_REQUEST_CODE] = "request-code", [BODY_VALIDATE] = "validate-and-cleanup"};

void flow_count_outcome(enum body_step step, int outcome)
{
    char number[12] = "ok";
    if (outcome < CODE_SENT)
        snprintf(number, sizeof number, "%03d", outcome);
    counter_add(&outcomes, 1, step_names[step], number);
}

static void write_success(struct flow *f, int outcome)
{
    struct request *rq = f->rq;
    const struct contract *contract = f->context->contract;
    struct str message = str_of(outcome == CODE_SENT ? contract->code_sent : contract->user_deleted);
    AUTO(buf) struct buf out = buf_new(2048);
    struct json_writer w = json_to(&out);
    json_open(&w, '{');
    json_key(&w, "success");
    json_bool(&w, true);
    json_key(&w, "message");
    json_str(&w, message);
    json_key(&w, "correlationId");
    json_str(&w, str_of(rq->correlation_id));
    json_key(&w, "data");
    json_open(&w, '{');
    json_key(&w, "step");
    json_str(&w, outcome == CODE_SENT ? STR("code-sent") : STR("user-deleted"));
    json_key(&w, "message");
    json_str(&w, message);
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
    rq->reply.outcome = outcome == CODE_SENT ? "code-sent" : "user-deleted";
}

/* The outcome that is answered when answers must not reveal who is registered: the first step always succeeds, the second
 * only with the right code. */
static int uniform_outcome(struct flow *f)
{
    if (f->step == BODY_VALIDATE && f->outcome == CLEANUP_RATE_LIMITED)
        return CLEANUP_RATE_LIMITED; /* the same for every address */
    if (f->step == BODY_VALIDATE)
        return f->outcome == USER_DELETED ? USER_DELETED : CLEANUP_WRONG_CODE;
    /* By the clock of the request for every address: the database's may differ, and it was read for orphans only. */
    int64_t arrived_us = clock_installation_us() - (clock_ns() - f->rq->arrived_ns) / NS_PER_US;
    clock_format_ms(arrived_us + f->context->contract->code_life_s * 1000000, f->expires_at);
    return CODE_SENT;
}

void flow_answer(struct flow *f)
{
    if (!f->revocable)
        flow_count_outcome(f->step, f->outcome);
    histogram_observe(&step_time, (double)(clock_ns() - f->rq->arrived_ns) / (double)NS_PER_S, step_names[f->step]);

    int outcome = f->context->uniform ? uniform_outcome(f) : f->outcome;
    flow_limit_headers(f);
    if (outcome >= CODE_SENT)
        write_success(f, outcome);
    else if (outcome == CLEANUP_RATE_LIMITED)
        flow_write_limited(f);
    else
        contract_refuse_as(
            f->rq, f->context->contract, (enum cleanup_error)outcome,
            /* cppcheck-suppress arrayIndexOutOfBoundsCond ; no outcome lies between errors and CODE_SENT */
            f->context->contract->errors[outcome].status,
            f->blocked && outcome == CLEANUP_NOT_ORPHANED ? f->context->contract->blocked : NULL);
    reply_send(f->rq, f->rq->reply.status);
}

void flow_answer_fault(struct flow *f, enum err e)
{
    log_correlate(f->rq->correlation_id);
    log_warn("cleanup failed", F_STR("step", step_names[f->step]), F_STR("error", err_name(e)),
             F_STR("sqlstate", f->fault.sqlstate), F_STR("constraint", f->fault.constraint));
    log_correlate(NULL);
    flow_count_outcome(f->step, CLEANUP_FAULT);
    flow_limit_headers(f);
    contract_refuse(f->rq, f->context->contract, CLEANUP_FAULT);
    reply_send(f->rq, f->rq->reply.status);
}

void flow_write_mail_failed(struct flow *f)
{
    if (f->context->uniform)
        write_success(f, uniform_outcome(f));
    else
        contract_refuse(f->rq, f->context->contract, CLEANUP_MAIL_FAILED);
}
