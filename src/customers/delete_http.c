/* Deleting a customer at once, and legal holds, by admins over HTTP. */
#include "api/db_request.h"
#include "api/fields.h"
#include "customers/customers.h"
#include "customers/expiry.h"

struct deletion_request {
    struct db_request db;
    struct customers *context;
    char id[37];
    struct actor actor;
    const char *reason; /* of a legal hold; NULL ends it */
    struct deletion_result result;
    bool found;
    struct str object;
};

static enum err run_delete(struct db_request *db, struct pg *pg);
static void answer_delete(struct db_request *db);
static enum err run_legal_hold(struct db_request *db, struct pg *pg);
static void answer_legal_hold(struct db_request *db);

/* NULL after an answer was sent. */
static struct deletion_request *request_new(struct request *rq, const struct caller *caller, struct customers *context,
                                            enum err (*run)(struct db_request *, struct pg *),
                                            void (*answer)(struct db_request *))
{
    struct deletion_request *d = db_request_new(rq, sizeof *d, run, answer);
    if (!d || !request_id(rq, 0, d->id))
        return NULL;
    d->context = context;
    d->actor = actor_of(rq, caller);
    return d;
}

static struct deletion_request *request_of(struct db_request *db)
{
    return OWNER_OF(db, struct deletion_request, db);
}

/* DELETE /v1/customers/{id}. 1. On the loop. */
void customer_delete_handle(struct request *rq, const struct caller *caller, void *customers)
{
    struct deletion_request *d = request_new(rq, caller, customers, run_delete, answer_delete);
    if (d)
        db_request_start(&d->db, customers_pool(d->context, LANE_BACKGROUND));
}

/* 2. On a worker. */
static enum err run_delete(struct db_request *db, struct pg *pg)
{
    struct deletion_request *d = request_of(db);
    const struct deletion_terms terms = customers_deletion_terms(d->context);
    return customer_delete(&terms, pg, d->id, &d->actor, db->job.deadline_ns, db->rq->arena, &d->result);
}

/* 3. On the same worker. */
static void answer_delete(struct db_request *db)
{
    struct deletion_request *d = request_of(db);
    struct request *rq = db->rq;
    switch (d->result.outcome) {
    case DELETION_DONE:
    case DELETION_REDRIVEN:
        reply_not_before(rq, customer_change_known_ns(d->result.committed_ns));
        reply_body(rq, "application/json", d->result.object);
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

static bool is_reason(struct str text)
{
    return str_trim(text).len > 0;
}

/* False after an answer was sent. */
static bool read_reason(struct request *rq, struct deletion_request *d)
{
    static const char wrong[] = "Send {\"reason\":…}: why the customer is held, up to 1000 bytes.";
    static const struct field reason = {.name = "reason",
                                        .required = true,
                                        .bytes_max = HOLD_REASON_MAX,
                                        .fits = is_reason,
                                        .code = "INVALID_REASON",
                                        .message = wrong};
    AUTO(fields) struct fields f = fields_read(rq->arena, rq->body, "INVALID_REASON", wrong);
    struct str text = field_text(&f, &reason);
    if (text.at && !(d->reason = arena_copy(rq->arena, str_trim(text)).at))
        f.err = ERR_FULL;
    return !fields_refuse(&f, rq);
}

/* POST and DELETE /v1/customers/{id}/hold. 1. On the loop. */
void customer_legal_hold_handle(struct request *rq, const struct caller *caller, void *customers)
{
    struct deletion_request *d = request_new(rq, caller, customers, run_legal_hold, answer_legal_hold);
    if (d && read_reason(rq, d))
        db_request_start(&d->db, customers_pool(d->context, LANE_BACKGROUND));
}

void customer_legal_unhold_handle(struct request *rq, const struct caller *caller, void *customers)
{
    struct deletion_request *d = request_new(rq, caller, customers, run_legal_hold, answer_legal_hold);
    if (d)
        db_request_start(&d->db, customers_pool(d->context, LANE_BACKGROUND));
}

/* 2. On a worker. */
static enum err run_legal_hold(struct db_request *db, struct pg *pg)
{
    struct deletion_request *d = request_of(db);
    enum err e = customer_legal_hold(pg, d->id, d->reason, &d->actor, db->job.deadline_ns, db->rq->arena, &d->object);
    d->found = e == OK;
    return e == ERR_MISSING ? OK : e;
}

/* 3. On the same worker. */
static void answer_legal_hold(struct db_request *db)
{
    struct deletion_request *d = request_of(db);
    if (!d->found) {
        reply_refuse(db->rq, 404, "CUSTOMER_NOT_FOUND", "There is no customer with this id, or no more.");
        return;
    }
    reply_body(db->rq, "application/json", d->object);
    reply_send(db->rq, 200);
}
