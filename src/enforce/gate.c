#include "enforce/gate.h"

#include "base/metrics.h"

METRIC_COUNTER(decisions, "reclaim_gate_decisions_total", "Requests that the gate was asked about.", "verdict",
               "source");

static void count(const struct question *q, const char *verdict)
{
    counter_add(&decisions, 1, verdict, q->from_memory ? "memory" : "database");
}

/* Some proxies keep the body of our answer from the client, and cannot ask twice without risking another answer: the
 * same JSON is in a header, from which they can write it (deploy/nginx). */
static void refuse(struct question *q, int status)
{
    reply_header(q->rq, "X-Gate-Body", q->rq->reply.body.at);
    reply_send(q->rq, status);
}

static void let_pass(struct question *q, const char *customer_id)
{
    count(q, "passed");
    reply_header(q->rq, "X-Customer-Id", customer_id);
    reply_header(q->rq, "X-Customer-Status", "active");
    reply_send(q->rq, 200);
}

static void decide(struct question *q)
{
    static const char *const doubts[] = {[WHO_KNOWN] = "no_customer",
                                         [WHO_NO_CREDENTIALS] = "no_credentials",
                                         [WHO_BAD_CREDENTIALS] = "bad_credentials",
                                         [WHO_UNSURE] = "unsure"};
    const struct caller *c = &q->caller;
    if (q->verdict == WHO_KNOWN && c->standing == CUSTOMER_ACTIVE) {
        struct str id = arena_copy(q->rq->arena, str_of(c->customer_id));
        if (id.at) {
            let_pass(q, id.at);
            return;
        }
        q->verdict = WHO_UNSURE;
    }
    if (q->verdict == WHO_KNOWN && c->standing == CUSTOMER_FROZEN) {
        count(q, "frozen");
        refuse(q, who_word_frozen(q->who, q->rq, c));
    } else {
        count(q, doubts[q->verdict]);
        refuse(q, who_word(q->rq, q));
    }
}

void gate_handle(struct request *rq)
{
    struct question q = {.rq = rq, .answered = decide};
    who_ask(rq->route->room, &q);
}
