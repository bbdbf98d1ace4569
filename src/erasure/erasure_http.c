/* The ledger of an erasure, what one would delete, and receipts from elsewhere; over HTTP. */
#include <string.h>

#include "api/db_request.h"
#include "base/json.h"
#include "erasure/cascade.h"

#define PREVIEW_MOST 10000 /* rows counted a participant */
#define ERROR_MAX 200

struct erasure {
    struct db_request db;
    char id[37];
    bool preview;
    struct str ledger; /* absent: there is no such customer */
    /* A receipt: */
    const char *participant, *error;
    bool done, missing;
    int64_t rows;
};

static struct erasure *erasure_of(struct db_request *db)
{
    return OWNER_OF(db, struct erasure, db);
}

static enum err read_ledger(struct erasure *x, struct pg *pg)
{
    struct pg_call call = {.ask = x->preview ? &cascade_preview : &cascade_ledger,
                           .args = {pg_text(x->id), pg_i64(PREVIEW_MOST)}};
    enum err e = pg_ask(pg, &call, x->db.job.deadline_ns);
    if (e)
        return e;
    x->ledger = (struct str){NULL, 0};
    if (pg_is_null(&call, 0, 0))
        return OK;
    x->ledger = arena_copy(x->db.rq->arena, pg_get(&call, 0, 0));
    return x->ledger.at ? OK : ERR_MEMORY;
}

static enum err run_show(struct db_request *db, struct pg *pg)
{
    return read_ledger(erasure_of(db), pg);
}

static void answer_ledger(struct db_request *db)
{
    struct erasure *x = erasure_of(db);
    if (!x->ledger.at) {
        reply_refuse(db->rq, 404, "CUSTOMER_NOT_FOUND", "There is no customer with this id.");
        return;
    }
    reply_body(db->rq, "application/json", x->ledger);
    reply_send(db->rq, 200);
}

void erasure_show_handle(struct request *rq, const struct caller *caller, void *cascade)
{
    struct cascade *context = cascade;
    struct erasure *x = db_request_new(rq, sizeof *x, run_show, answer_ledger);
    if (!x || !request_id(rq, 0, x->id))
        return;
    if (!caller->admin && strcmp(x->id, caller->customer_id) != 0) {
        if (caller->standing == CUSTOMER_FROZEN)
            authenticator_refuse_frozen(context->authenticator, rq, caller);
        else
            reply_refuse(rq, 403, "FORBIDDEN", "These credentials may not see this customer.");
        return;
    }
    struct str preview = request_query(rq, "preview");
    if (preview.at && !str_eq(preview, STR("1")) && !str_eq(preview, STR("0"))) {
        reply_refuse(rq, 400, "INVALID_PREVIEW", "preview is 1, or is left out.");
        return;
    }
    x->preview = str_eq(preview, STR("1"));
    db_request_start(&x->db, atomic_load(&context->pool));
}

static enum err run_receipt(struct db_request *db, struct pg *pg)
{
    struct erasure *x = erasure_of(db);
    enum err e = cascade_receive(NULL, pg, x->id, x->participant, x->done, x->rows, x->error, db->job.deadline_ns);
    x->missing = e == ERR_MISSING;
    if (e)
        return x->missing ? OK : e;
    return read_ledger(x, pg);
}

static void answer_receipt(struct db_request *db)
{
    if (erasure_of(db)->missing)
        reply_refuse(db->rq, 404, "RECEIPT_NOT_EXPECTED",
                     "No erasure of this customer is under way, or no remote participant has this name.");
    else
        answer_ledger(db);
}

/* False after a 400 was sent. */
static bool read_receipt(struct request *rq, struct erasure *x)
{
    struct why why;
    struct str status = STR("done"), error = {NULL, 0};
    AUTO(json) json_t *body = json_read_object(rq->body.len ? rq->body : STR("{}"), &why);
    const json_t *rows = body ? json_object_get(body, "rows") : NULL;
    bool sound = body && json_get_str(body, "status", &status) != ERR_INPUT &&
                 json_get_str(body, "error", &error) != ERR_INPUT &&
                 (!rows || (json_is_integer(rows) && json_integer_value(rows) >= 0));
    x->done = str_eq(status, STR("done"));
    x->rows = rows ? json_integer_value(rows) : -1;
    if (!sound || (!x->done && !str_eq(status, STR("failed"))) || error.len > ERROR_MAX) {
        reply_refuse(rq, 400, "INVALID_RECEIPT",
                     "Send {\"rows\":…,\"status\":\"done\" or \"failed\",\"error\":…}; each may be left out.");
        return false;
    }
    struct str participant = arena_copy(rq->arena, rq->params[1]);
    struct str copy = error.at ? arena_copy(rq->arena, error) : (struct str){NULL, 0};
    if (!participant.at || (error.at && !copy.at)) {
        reply_fault(rq, ERR_FULL);
        return false;
    }
    x->participant = participant.at;
    x->error = copy.at;
    return true;
}

void erasure_receipt_handle(struct request *rq, const struct caller *caller, void *cascade)
{
    (void)caller;
    struct cascade *context = cascade;
    struct erasure *x = db_request_new(rq, sizeof *x, run_receipt, answer_receipt);
    if (!x || !request_id(rq, 0, x->id) || !read_receipt(rq, x))
        return;
    db_request_start(&x->db, atomic_load(&context->pool));
}
