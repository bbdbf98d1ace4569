#include "customers/changing.h"

#include "base/clock.h"

struct changing {
    struct errand errand;
    struct customers *room;
    const char *customer_id;
    enum customer_event event;
    struct actor actor;
    struct changed changed;
};

static enum err run(struct errand *errand, struct pg *pg)
{
    struct changing *c = OWNER_OF(errand, struct changing, errand);
    struct change_needs needs = customers_needs(c->room);
    return customer_change(&needs, pg, c->customer_id, c->event, &c->actor, errand->job.deadline_ns, errand->rq->arena,
                           &c->changed);
}

static void answer(struct errand *errand)
{
    struct changing *c = OWNER_OF(errand, struct changing, errand);
    struct request *rq = errand->rq;
    switch (c->changed.outcome) {
    case CHANGE_DONE:
    case CHANGE_UNCHANGED:
        /* Once the answer is there, no instance may still believe what was true before. */
        reply_not_before(rq, c->changed.committed_ns + FROZEN_LEASE_NS);
        reply_body(rq, "application/json", c->changed.object);
        reply_send(rq, 200);
        return;
    case CHANGE_UNKNOWN:
        reply_refuse(rq, 404, "CUSTOMER_NOT_FOUND", "There is no customer with this id.");
        return;
    case CHANGE_REFUSED:
        if (c->event == EVENT_RECOVER)
            reply_refuse(rq, 404, "NOT_FROZEN",
                         "No deletion is scheduled for this customer: there is nothing to recover.");
        else
            reply_refuse(rq, 404, "CUSTOMER_DELETED", "This customer has been deleted.");
        return;
    }
}

void change_over_http(struct request *rq, struct customers *room, const char *customer_id, enum customer_event event,
                      const struct actor *actor)
{
    struct changing *c = errand_new(rq, sizeof *c, run, answer);
    if (!c)
        return;
    c->room = room;
    c->customer_id = customer_id;
    c->event = event;
    c->actor = *actor;
    errand_go(&c->errand, atomic_load(&room->pool));
}
