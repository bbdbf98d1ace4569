#include "enforce/gate.h"

#include "base/metrics.h"

METRIC_COUNTER(decisions, "reclaim_gate_decisions_total", "Requests that the gate was asked about.", "verdict",
               "source");

static void count(const struct question *q, const char *verdict)
{
    counter_add(&decisions, 1, verdict, q->from_memory ? "memory" : "database");
}

static void let_pass(struct question *q)
{
    struct request *rq = q->rq;
    struct str id = arena_copy(rq->arena, str_of(q->caller.customer_id));
    if (!id.at) {
        q->verdict = WHO_UNSURE;
        count(q, "unsure");
        who_refuse(rq, q);
        return;
    }
    count(q, "passed");
    reply_header(rq, "X-Customer-Id", id.at);
    reply_header(rq, "X-Customer-Status", "active");
    reply_send(rq, 200);
}

static void decide(struct question *q)
{
    static const char *const doubts[] = {[WHO_KNOWN] = "no_customer",
                                         [WHO_NO_CREDENTIALS] = "no_credentials",
                                         [WHO_BAD_CREDENTIALS] = "bad_credentials",
                                         [WHO_UNSURE] = "unsure"};
    if (q->verdict == WHO_KNOWN && q->caller.standing == CUSTOMER_ACTIVE) {
        let_pass(q);
    } else if (q->verdict == WHO_KNOWN && q->caller.standing == CUSTOMER_FROZEN) {
        count(q, "frozen");
        who_refuse_frozen(q->who, q->rq, &q->caller);
    } else {
        count(q, doubts[q->verdict]);
        who_refuse(q->rq, q);
    }
}

void gate_handle(struct request *rq)
{
    struct question *q = request_work(rq, sizeof *q);
    if (!q) {
        who_refuse(rq, &(struct question){.verdict = WHO_UNSURE});
        return;
    }
    q->rq = rq;
    q->answered = decide;
    who_ask(rq->route->room, q);
}
