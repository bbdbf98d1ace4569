#include "gate/gate.h"

#include "base/metrics.h"

METRIC_COUNTER(decisions, "reclaim_gate_decisions_total", "Requests decided by the gate.", "verdict", "source");

static void count(const struct authentication *q, const char *verdict)
{
    counter_add(&decisions, 1, verdict, q->from_memory ? "memory" : "database");
}

/* Some proxies drop the body of this reply, and a second request could get a different one: the same JSON is in a
 * header, from which they can write it (deploy/nginx). */
static void refuse(struct authentication *q, int status)
{
    reply_header(q->rq, "X-Gate-Body", q->rq->reply.body.at);
    reply_send(q->rq, status);
}

static void send_pass(struct authentication *q, const char *customer_id)
{
    count(q, "passed");
    reply_header(q->rq, "X-Customer-Id", customer_id);
    reply_header(q->rq, "X-Customer-Status", "active");
    reply_send(q->rq, 200);
}

static void decide(struct authentication *q)
{
    static const char *const refusals[] = {[CALLER_KNOWN] = "no_customer",
                                           [CALLER_HAS_NONE] = "no_credentials",
                                           [CALLER_REFUSED] = "bad_credentials",
                                           [CALLER_UNSURE] = "unsure"};
    const struct caller *c = &q->caller;
    if (q->verdict == CALLER_KNOWN && c->standing == STANDING_ACTIVE) {
        struct str id = arena_copy(q->rq->arena, str_of(c->customer_id));
        if (id.at) {
            send_pass(q, id.at);
            return;
        }
        q->verdict = CALLER_UNSURE;
    }
    if (q->verdict == CALLER_KNOWN && c->standing == STANDING_FROZEN) {
        count(q, "frozen");
        refuse(q, authenticator_write_frozen(q->authenticator, q->rq, c));
    } else {
        count(q, refusals[q->verdict]);
        refuse(q, authentication_write_refusal(q->rq, q));
    }
}

void gate_handle(struct request *rq)
{
    struct authentication q = {.rq = rq, .answered = decide};
    authenticate(rq->route->context, &q);
}
