/* The mail of a code, between its promise in the transaction and the answer's release: the answer depends on its result. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "recovery/flow.h"

static void answer_withdrawn(struct code_withdrawal *withdrawal);
static struct mail_revocable *answer_revocably(struct flow *f);

/* 1. On the engine's thread: a provider took the mail, all refused it, or the answer is due. */
struct mail_revocable *flow_mail_result(struct mail_waiter *waiter, enum mail_result result)
{
    struct flow *f = OWNER_OF(waiter, struct flow, waiter);
    if (result == MAIL_PENDING)
        return answer_revocably(f);
    if (result == MAIL_DELIVERED) {
        flow_answer(f);
        return NULL;
    }
    f->outcome = CLEANUP_MAIL_FAILED;
    f->withdrawal = (struct code_withdrawal){
        .log_id = f->log_id, .correlation_id = f->rq->correlation_id, .done = answer_withdrawn};
    memcpy(f->withdrawal.email_hash, f->subject.email_hash, sizeof f->withdrawal.email_hash);
    code_withdraw(&f->withdrawal, atomic_load(&f->context->pool));
    return NULL;
}

/* 2. On a worker, after every provider has refused: the code is gone, the answer is 008. */
static void answer_withdrawn(struct code_withdrawal *withdrawal)
{
    flow_answer(OWNER_OF(withdrawal, struct flow, withdrawal));
}

/* A success that is parked until its release instant, and becomes 008 when every provider has refused the mail before that.
 * It outlives the flow and the request; freed by its last step. */
struct success {
    struct mail_revocable mail;
    struct alternative_reply *refusal;
    struct cleanup *context;
    struct code_withdrawal withdrawal;
};

static bool revoke(struct mail_revocable *mail);
static void keep(struct mail_revocable *mail);
static void free_withdrawn(struct code_withdrawal *withdrawal);

static void success_free(struct success *s)
{
    alternative_reply_free(s->refusal);
    free(s);
}

/* Writes the refusal that can replace the success; NULL when the answer is not held, or memory is short. */
static struct success *success_new(struct flow *f)
{
    struct request *rq = f->rq;
    struct success *s = rq->hold.until_ns > clock_ns() ? calloc(1, sizeof *s) : NULL;
    if (!s)
        return NULL;
    s->mail = (struct mail_revocable){rq->hold.until_ns, revoke, keep};
    s->context = f->context;
    s->withdrawal = (struct code_withdrawal){.log_id = f->log_id, .done = free_withdrawn};
    memcpy(s->withdrawal.email_hash, f->subject.email_hash, sizeof s->withdrawal.email_hash);
    flow_write_mail_failed(f);
    if (!(s->refusal = reply_with_alternative(rq))) {
        free(s);
        return NULL;
    }
    return s;
}

/* 2. On the engine's thread, with the mail still on its way: success, which may be replaced until its release. */
static struct mail_revocable *answer_revocably(struct flow *f)
{
    struct success *s = success_new(f);
    f->revocable = s != NULL;
    flow_answer(f);
    return s ? &s->mail : NULL;
}

/* 3a. Every provider refused: the parked success becomes the refusal, unless it has been released. */
static bool revoke(struct mail_revocable *mail)
{
    struct success *s = OWNER_OF(mail, struct success, mail);
    bool in_time = alternative_reply_choose(s->refusal);
    flow_count_outcome(BODY_REQUEST_CODE, in_time ? (int)CLEANUP_MAIL_FAILED : (int)CODE_SENT);
    if (in_time)
        code_withdraw(&s->withdrawal, atomic_load(&s->context->pool));
    else
        success_free(s);
    return in_time;
}

/* 3b. The mail was taken, or the success was released. */
static void keep(struct mail_revocable *mail)
{
    flow_count_outcome(BODY_REQUEST_CODE, CODE_SENT);
    success_free(OWNER_OF(mail, struct success, mail));
}

/* 4. On a worker, after 3a. */
static void free_withdrawn(struct code_withdrawal *withdrawal)
{
    success_free(OWNER_OF(withdrawal, struct success, withdrawal));
}
