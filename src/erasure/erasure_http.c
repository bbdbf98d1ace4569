/* The ledger of an erasure, the preview of one, what every one erases, and receipts of remote participants; over HTTP. */
#include "api/db_request.h"
#include "api/fields.h"
#include "erasure/cascade.h"

#define PREVIEW_MOST 10000 /* rows counted a participant */

/* What went wrong at a service is for its operators. */
const struct statement erasure_read_by_link = {
    .name = "erasure_read_by_link",
    .sql = "SELECT jsonb_set(l.ledger, '{participants}', coalesce((SELECT jsonb_agg(p.one || '{\"error\": null}'"
           " ORDER BY p.at) FROM jsonb_array_elements(l.ledger -> 'participants') WITH ORDINALITY AS p (one, at)),"
           " '[]'))::text AS ledger FROM reclaim.erasures e"
           " CROSS JOIN LATERAL (SELECT reclaim.erasure_ledger(e.customer_id)::jsonb AS ledger) l"
           " WHERE e.customer_id = $1::uuid AND e.link_hash = $2::text",
    .params = 2,
    .columns = "ledger:text",
};

struct erasure_request {
    struct db_request db;
    char id[37];
    char secret_hash[DIGEST_HEX_LEN + 1];
    bool preview;
    int64_t backup_seconds;
    struct str ledger; /* or another answer; absent: there is no such customer */
    /* A receipt: */
    struct receipt receipt;
    enum receipt_reporter reporter;
    bool missing;
};

static enum err read_ledger(struct db_request *db, struct pg *pg);
static void answer_ledger(struct db_request *db);
static enum err read_ledger_by_link(struct db_request *db, struct pg *pg);
static void answer_link(struct db_request *db);
static enum err read_participants(struct db_request *db, struct pg *pg);
static bool read_receipt(struct request *rq, struct erasure_request *x);
static enum err store_receipt(struct db_request *db, struct pg *pg);
static void answer_receipt(struct db_request *db);

static struct erasure_request *request_of(struct db_request *db)
{
    return OWNER_OF(db, struct erasure_request, db);
}

/* GET /v1/customers/{id}/erasure. 1. On the loop. */
void erasure_show_handle(struct request *rq, const struct caller *caller, void *cascade)
{
    struct cascade *context = cascade;
    struct erasure_request *x = db_request_new(rq, sizeof *x, read_ledger, answer_ledger);
    if (!x || !request_id(rq, 0, x->id))
        return;
    if (!caller_sees(caller, x->id)) {
        if (caller->standing == STANDING_FROZEN)
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

/* 2. On a worker. */
static enum err read_ledger(struct db_request *db, struct pg *pg)
{
    struct erasure_request *x = request_of(db);
    struct pg_call call = {.ask = x->preview ? &cascade_preview : &cascade_ledger,
                           .args = {pg_text(x->id), pg_i64(PREVIEW_MOST)}};
    enum err e = pg_ask(pg, &call, db->job.deadline_ns);
    if (e)
        return e;
    x->ledger = (struct str){NULL, 0};
    if (pg_is_null(&call, 0, 0))
        return OK;
    x->ledger = arena_copy(db->rq->arena, pg_get(&call, 0, 0));
    return x->ledger.at ? OK : ERR_MEMORY;
}

/* 3. On the same worker. */
static void answer_ledger(struct db_request *db)
{
    struct erasure_request *x = request_of(db);
    if (!x->ledger.at) {
        reply_refuse(db->rq, 404, "CUSTOMER_NOT_FOUND", "There is no customer with this id.");
        return;
    }
    reply_body(db->rq, "application/json", x->ledger);
    reply_send(db->rq, 200);
}

/* GET /v1/customers/{id}/erasure?secret=. 1. On the loop. */
bool erasure_by_link(struct request *rq, void *cascade)
{
    struct cascade *context = cascade;
    struct str secret = request_query(rq, "secret");
    if (!secret.at)
        return false;
    struct erasure_request *x = db_request_new(rq, sizeof *x, read_ledger_by_link, answer_link);
    if (!x || !request_id(rq, 0, x->id))
        return true;
    struct digest hash = digest_sha256(secret);
    digest_hex(&hash, x->secret_hash);
    db_request_start(&x->db, atomic_load(&context->anonymous));
    return true;
}

/* 2. On a worker. */
static enum err read_ledger_by_link(struct db_request *db, struct pg *pg)
{
    struct erasure_request *x = request_of(db);
    struct pg_call call = {.ask = &erasure_read_by_link, .args = {pg_text(x->id), pg_text(x->secret_hash)}};
    enum err e = pg_ask(pg, &call, db->job.deadline_ns);
    x->ledger = (struct str){NULL, 0};
    if (e || call.rows == 0)
        return e;
    x->ledger = arena_copy(db->rq->arena, pg_get(&call, 0, 0));
    return x->ledger.at ? OK : ERR_MEMORY;
}

/* 3. On the same worker. */
static void answer_link(struct db_request *db)
{
    if (!request_of(db)->ledger.at)
        reply_refuse(db->rq, 404, "CERTIFICATE_NOT_FOUND",
                     "This link leads to no certificate. Copy all of it from the mail.");
    else
        answer_ledger(db);
}

/* GET /v1/erasure/participants. 1. On the loop. */
void erasure_participants_handle(struct request *rq)
{
    struct cascade *context = rq->route->context;
    struct erasure_request *x = db_request_new(rq, sizeof *x, read_participants, answer_ledger);
    if (!x)
        return;
    x->backup_seconds = context->backup_retention_ms / 1000;
    db_request_start(&x->db, atomic_load(&context->anonymous));
}

/* 2. On a worker. */
static enum err read_participants(struct db_request *db, struct pg *pg)
{
    struct erasure_request *x = request_of(db);
    struct pg_call call = {.ask = &cascade_public, .args = {pg_i64(x->backup_seconds)}};
    enum err e = pg_ask(pg, &call, db->job.deadline_ns);
    if (e)
        return e;
    x->ledger = arena_copy(db->rq->arena, pg_get(&call, 0, 0));
    return x->ledger.at ? OK : ERR_MEMORY;
}

/* POST /v1/customers/{id}/erasure/{participant}. 1. On the loop. */
void erasure_receipt_handle(struct request *rq, const struct caller *caller, void *cascade)
{
    struct cascade *context = cascade;
    if (caller->scope == SCOPE_RECEIPTS && !str_eq(rq->params[1], str_of(caller->participant))) {
        reply_refuse(rq, 403, "FORBIDDEN", "This key is for the receipts of another participant.");
        return;
    }
    struct erasure_request *x = db_request_new(rq, sizeof *x, store_receipt, answer_receipt);
    if (!x)
        return;
    x->reporter = caller->scope == SCOPE_RECEIPTS ? REPORTED_BY_SERVICE : REPORTED_BY_ADMINISTRATOR;
    if (request_id(rq, 0, x->id) && read_receipt(rq, x))
        db_request_start(&x->db, atomic_load(&context->pool));
}

/* False after an answer was sent. */
static bool read_receipt(struct request *rq, struct erasure_request *x)
{
    struct why why;
    AUTO(json) json_t *body = json_read_object(rq->body.len ? rq->body : STR("{}"), &why);
    if (!body || receipt_read_report(body, &x->receipt, &why) || x->receipt.error_is_cut) {
        reply_refuse(rq, 400, "INVALID_RECEIPT",
                     "Send {\"rows\":…,\"status\":\"done\" or \"failed\",\"error\":…}; each may be left out.");
        return false;
    }
    /* A name that is too long is no participant's. */
    if (str_copy(rq->params[1], x->receipt.participant, sizeof x->receipt.participant))
        x->receipt.participant[0] = '\0';
    return true;
}

/* 2. On a worker: stores the receipt, then reads the ledger. */
static enum err store_receipt(struct db_request *db, struct pg *pg)
{
    struct erasure_request *x = request_of(db);
    enum err e = cascade_receive(pg, x->id, x->receipt.participant, x->receipt.done, x->receipt.rows,
                                 *x->receipt.error ? x->receipt.error : NULL, x->reporter, db->job.deadline_ns);
    x->missing = e == ERR_MISSING;
    if (e)
        return x->missing ? OK : e;
    return read_ledger(db, pg);
}

/* 3. On the same worker. */
static void answer_receipt(struct db_request *db)
{
    if (request_of(db)->missing)
        reply_refuse(db->rq, 404, "RECEIPT_NOT_EXPECTED",
                     "No erasure of this customer is under way, or no remote participant has this name.");
    else
        answer_ledger(db);
}
