/* Deleting a customer at once, and legal holds: what admins do over HTTP. */
#include <string.h>

#include "api/db_request.h"
#include "base/json.h"
#include "customers/customers.h"
#include "customers/expiry.h"

struct removal {
    struct db_request db;
    struct customers *context;
    char id[37];
    struct actor actor;
    struct str reason; /* of a hold; absent: it ends */
    struct deletion_result result;
    bool found;
    struct str object;
};

static struct removal *removal_of(struct db_request *db)
{
    return OWNER_OF(db, struct removal, db);
}

/* NULL after an answer was sent. */
static struct removal *removal_new(struct request *rq, const struct caller *caller, struct customers *context,
                                   enum err (*run)(struct db_request *, struct pg *),
                                   void (*answer)(struct db_request *))
{
    struct removal *r = db_request_new(rq, sizeof *r, run, answer);
    if (!r || !request_id(rq, 0, r->id))
        return NULL;
    r->context = context;
    r->actor = actor_of(rq, caller);
    return r;
}

static enum err run_delete(struct db_request *db, struct pg *pg)
{
    struct removal *r = removal_of(db);
    const struct customers *context = r->context;
    bool mails = context->post && post_has_provider(context->post);
    struct deletion needs = {mails ? context->last_mail_key : NULL, context->engine, context->hangup};
    return customer_delete(&needs, pg, r->id, &r->actor, db->job.deadline_ns, db->rq->arena, &r->result);
}

static void answer_delete(struct db_request *db)
{
    struct removal *r = removal_of(db);
    struct request *rq = db->rq;
    switch (r->result.outcome) {
    case DELETION_DONE:
    case DELETION_REDRIVEN:
        reply_not_before(rq, r->result.committed_ns + FROZEN_LEASE_NS); /* as for a freeze */
        reply_body(rq, "application/json", r->result.object);
        reply_send(rq, 200);
        return;
    case DELETION_UNKNOWN:
        reply_refuse(rq, 404, "CUSTOMER_NOT_FOUND", "There is no customer with this id.");
        return;
    case DELETION_HELD:
        reply_refuse(rq, 409, "LEGAL_HOLD", "A legal hold keeps this customer from being deleted. End the hold first.");
        return;
    }
}

void customer_delete_handle(struct request *rq, const struct caller *caller, void *customers)
{
    struct removal *r = removal_new(rq, caller, customers, run_delete, answer_delete);
    if (r)
        db_request_start(&r->db, atomic_load(&r->context->pool));
}

static enum err run_legal_hold(struct db_request *db, struct pg *pg)
{
    struct removal *r = removal_of(db);
    enum err e =
        customer_legal_hold(pg, r->id, r->reason.at, &r->actor, db->job.deadline_ns, db->rq->arena, &r->object);
    r->found = e == OK;
    return e == ERR_MISSING ? OK : e;
}

static void answer_legal_hold(struct db_request *db)
{
    struct removal *r = removal_of(db);
    if (!r->found) {
        reply_refuse(db->rq, 404, "CUSTOMER_NOT_FOUND", "There is no customer with this id, or no more.");
        return;
    }
    reply_body(db->rq, "application/json", r->object);
    reply_send(db->rq, 200);
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

void customer_legal_hold_handle(struct request *rq, const struct caller *caller, void *customers)
{
    struct removal *r = removal_new(rq, caller, customers, run_legal_hold, answer_legal_hold);
    if (r && read_reason(rq, r))
        db_request_start(&r->db, atomic_load(&r->context->pool));
}

void customer_legal_unhold_handle(struct request *rq, const struct caller *caller, void *customers)
{
    struct removal *r = removal_new(rq, caller, customers, run_legal_hold, answer_legal_hold);
    if (r)
        db_request_start(&r->db, atomic_load(&r->context->pool));
}
