/* Deleting a customer at once, and legal holds: what admins do over HTTP. */
#include <string.h>

#include "auth/errand.h"
#include "base/json.h"
#include "customers/customers.h"
#include "customers/expiry.h"

struct removal {
    struct errand errand;
    struct customers *room;
    char id[37];
    struct actor actor;
    struct str reason; /* of a hold; absent: it ends */
    struct ended ended;
    bool found;
    struct str object;
};

static struct removal *removal_of(struct errand *errand)
{
    return OWNER_OF(errand, struct removal, errand);
}

/* NULL after an answer was sent. */
static struct removal *removal_new(struct request *rq, const struct caller *caller, struct customers *room,
                                   enum err (*run)(struct errand *, struct pg *), void (*answer)(struct errand *))
{
    struct removal *r = errand_new(rq, sizeof *r, run, answer);
    if (!r || !request_id(rq, 0, r->id))
        return NULL;
    r->room = room;
    r->actor = actor_of(rq, caller);
    return r;
}

static enum err run_delete(struct errand *errand, struct pg *pg)
{
    struct removal *r = removal_of(errand);
    const struct customers *room = r->room;
    bool mails = room->post && post_has_provider(room->post);
    struct ending needs = {mails ? room->farewell_key : NULL, room->engine, room->hangup};
    return customer_end(&needs, pg, r->id, &r->actor, errand->job.deadline_ns, errand->rq->arena, &r->ended);
}

static void answer_delete(struct errand *errand)
{
    struct removal *r = removal_of(errand);
    struct request *rq = errand->rq;
    switch (r->ended.outcome) {
    case ENDED_DONE:
    case ENDED_REDRIVEN:
        reply_not_before(rq, r->ended.committed_ns + FROZEN_LEASE_NS); /* as for a freeze */
        reply_body(rq, "application/json", r->ended.object);
        reply_send(rq, 200);
        return;
    case ENDED_UNKNOWN:
        reply_refuse(rq, 404, "CUSTOMER_NOT_FOUND", "There is no customer with this id.");
        return;
    case ENDED_HELD:
        reply_refuse(rq, 409, "LEGAL_HOLD", "A legal hold keeps this customer from being deleted. End the hold first.");
        return;
    }
}

void customer_delete_handle(struct request *rq, const struct caller *caller, void *customers)
{
    struct removal *r = removal_new(rq, caller, customers, run_delete, answer_delete);
    if (r)
        errand_go(&r->errand, atomic_load(&r->room->pool));
}

static enum err run_hold(struct errand *errand, struct pg *pg)
{
    struct removal *r = removal_of(errand);
    enum err e =
        customer_hold(pg, r->id, r->reason.at, &r->actor, errand->job.deadline_ns, errand->rq->arena, &r->object);
    r->found = e == OK;
    return e == ERR_MISSING ? OK : e;
}

static void answer_hold(struct errand *errand)
{
    struct removal *r = removal_of(errand);
    if (!r->found) {
        reply_refuse(errand->rq, 404, "CUSTOMER_NOT_FOUND", "There is no customer with this id, or no more.");
        return;
    }
    reply_body(errand->rq, "application/json", r->object);
    reply_send(errand->rq, 200);
}

static bool read_reason(struct request *rq, struct removal *r)
{
    struct why why;
    struct str reason;
    AUTO(json) json_t *body = json_read_object(rq->body, &why);
    if (!body || json_get_str(body, "reason", &reason) || str_trim(reason).len == 0 || reason.len > HOLD_REASON_MAX) {
        reply_refuse(rq, 400, "INVALID_REASON", "Send {\"reason\":…}: why the customer is held, up to 1000 bytes.");
        return false;
    }
    r->reason = arena_copy(rq->arena, str_trim(reason));
    if (!r->reason.at)
        reply_fault(rq, ERR_FULL);
    return r->reason.at != NULL;
}

void customer_hold_handle(struct request *rq, const struct caller *caller, void *customers)
{
    struct removal *r = removal_new(rq, caller, customers, run_hold, answer_hold);
    if (r && read_reason(rq, r))
        errand_go(&r->errand, atomic_load(&r->room->pool));
}

void customer_unhold_handle(struct request *rq, const struct caller *caller, void *customers)
{
    struct removal *r = removal_new(rq, caller, customers, run_hold, answer_hold);
    if (r)
        errand_go(&r->errand, atomic_load(&r->room->pool));
}
