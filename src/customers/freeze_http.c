#include "customers/freeze_http.h"

#include <inttypes.h>

struct change_request {
    struct db_request db;
    struct customers *context;
    const char *customer_id;
    enum customer_event event;
    struct actor actor;
    const char *reason;
    struct changed changed;
};

static enum err run(struct db_request *db, struct pg *pg);
static void answer(struct db_request *db);

/* 1. On the loop, or where the proof was checked. */
void change_over_http(struct request *rq, struct customers *context, const char *customer_id, enum customer_event event,
                      const struct actor *actor, const char *reason)
{
    struct change_request *c = db_request_new(rq, sizeof *c, run, answer);
    if (!c)
        return;
    c->context = context;
    c->customer_id = customer_id;
    c->event = event;
    c->actor = *actor;
    c->reason = reason;
    db_request_start(&c->db, customers_pool(context, LANE_BACKGROUND));
}

/* 2. On a worker. */
static enum err run(struct db_request *db, struct pg *pg)
{
    struct change_request *c = OWNER_OF(db, struct change_request, db);
    return customer_change(pg, c->customer_id, c->event, &c->actor, c->reason, db->job.deadline_ns, db->rq->arena,
                           &c->changed);
}

/* 3. On the same worker. */
static void answer(struct db_request *db)
{
    struct change_request *c = OWNER_OF(db, struct change_request, db);
    struct request *rq = db->rq;
    struct str wait;
    switch (c->changed.outcome) {
    case CHANGE_DONE:
    case CHANGE_UNCHANGED:
        reply_not_before(rq, customer_change_known_ns(c->changed.committed_ns));
        reply_body(rq, "application/json", c->changed.object);
        reply_send(rq, 200);
        return;
    case CHANGE_UNKNOWN:
        reply_refuse(rq, 404, "CUSTOMER_NOT_FOUND", "There is no customer with this id.");
        return;
    case CHANGE_BY_ADMIN:
        reply_refuse(rq, 403, "FROZEN_BY_ADMIN",
                     "An administrator froze this account. Only an administrator can recover it.");
        return;
    case CHANGE_TOO_OFTEN:
        wait = arena_printf(rq->arena, "%" PRId64, c->changed.wait_s);
        if (wait.at)
            reply_header(rq, "Retry-After", wait.at);
        reply_refuse(
            rq, 429, "FROZEN_TOO_OFTEN",
            "This account was frozen and recovered too often within 30 days. Wait as long as Retry-After says, "
            "or ask an administrator to delete it.");
        return;
    case CHANGE_REFUSED:
        if (c->event == CUSTOMER_RECOVERS)
            reply_refuse(rq, 404, "NOT_FROZEN",
                         "No deletion is scheduled for this customer: there is nothing to recover.");
        else
            reply_refuse(rq, 404, "CUSTOMER_DELETED", "This customer has been deleted.");
        return;
    }
}
