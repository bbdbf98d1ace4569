/* POST /v1/calls/{id}/progress and …/hangup: the switch reports how a call goes on. */
#include "api/db_request.h"
#include "api/fields.h"
#include "calls/calls.h"
#include "calls/limits.h"
#include "calls/statements.h"
#include "calls/status.h"
#include "pg/tx.h"

struct progress {
    struct db_request db;
    char id[37];
    enum call_status to;
    const char *to_tag, *reason; /* NULL when not given */
    enum { PROGRESS_DONE, PROGRESS_UNKNOWN, PROGRESS_REFUSED } outcome;
    enum call_status now; /* with PROGRESS_REFUSED */
    struct str call;
};

static enum err run(struct db_request *db, struct pg *pg);
static void answer(struct db_request *db);

/* 1. On the loop. */
void call_progress_handle(struct request *rq, const struct caller *caller, void *calls)
{
    static const struct field status = {.name = "status", .required = true, .bytes_max = CALL_NAME_MAX},
                              to_tag = {.name = "to_tag", .bytes_max = CALL_TAG_MAX};
    (void)caller;
    struct calls *context = calls;
    struct progress *p = db_request_new(rq, sizeof *p, run, answer);
    if (!p || !request_id(rq, 0, p->id))
        return;
    AUTO(fields) struct fields f = fields_read(rq->arena, rq->body, CALL_BODY_PROBLEM);
    struct str name = field_text(&f, &status);
    if (name.at && call_status_parse(name, &p->to))
        fields_fail(&f, &status, "is ringing, progressing, terminating, canceling or hangup");
    p->to_tag = field_copy(&f, &to_tag);
    if (!fields_refuse(&f, rq))
        db_request_start(&p->db, atomic_load(&context->pool));
}

void call_hangup_handle(struct request *rq, const struct caller *caller, void *calls)
{
    static const struct field reason = {.name = "reason", .bytes_max = CALL_REASON_MAX};
    (void)caller;
    struct calls *context = calls;
    struct progress *p = db_request_new(rq, sizeof *p, run, answer);
    if (!p || !request_id(rq, 0, p->id))
        return;
    struct str body = rq->body.len ? rq->body : STR("{}"); /* no field is required */
    AUTO(fields) struct fields f = fields_read(rq->arena, body, CALL_BODY_PROBLEM);
    p->to = CALL_HANGUP;
    p->reason = field_copy(&f, &reason);
    if (!p->reason || !*p->reason)
        p->reason = "normal";
    if (!fields_refuse(&f, rq))
        db_request_start(&p->db, atomic_load(&context->pool));
}

/* 2. On a worker: locks the call, decides, writes. */
static enum err run(struct db_request *db, struct pg *pg)
{
    struct progress *p = OWNER_OF(db, struct progress, db);
    AUTO(tx) struct tx *tx = tx_begin(pg, db->job.deadline_ns);
    struct pg_call row = {.ask = &call_lock, .args = {pg_text(p->id)}};
    enum err e = tx_trip(tx, &row, 1);
    if (e)
        return e;
    p->outcome = PROGRESS_UNKNOWN;
    if (row.rows == 0)
        return OK;
    if ((e = call_status_parse(pg_get(&row, 0, 0), &p->now)))
        return e;
    enum call_transition transition = call_transition(p->now, p->to);
    p->outcome = transition == CALL_TRANSITION_REFUSED ? PROGRESS_REFUSED : PROGRESS_DONE;
    struct str call = pg_get(&row, 0, 1);
    struct pg_call change = {.ask = &call_change_status,
                             .args = {pg_text(p->id), pg_text(call_status_name(p->to)), pg_text_or_null(p->to_tag),
                                      pg_text_or_null(p->reason)}};
    if (transition == CALL_TRANSITION_NONE)
        p->call = arena_copy(db->rq->arena, call);
    if (transition == CALL_TRANSITION_CHANGES) {
        if ((e = tx_commit(tx, &change, 1)))
            return e;
        p->call = arena_copy(db->rq->arena, pg_get(&change, 0, 0));
    }
    return p->outcome == PROGRESS_DONE && !p->call.at ? ERR_MEMORY : OK;
}

/* 3. On the same worker. */
static void answer(struct db_request *db)
{
    struct progress *p = OWNER_OF(db, struct progress, db);
    struct request *rq = db->rq;
    if (p->outcome == PROGRESS_UNKNOWN) {
        reply_refuse(rq, 404, "CALL_NOT_FOUND", "There is no call with this id.");
    } else if (p->outcome == PROGRESS_REFUSED) {
        struct str message = arena_printf(rq->arena, "The call is %s and cannot become %s.", call_status_name(p->now),
                                          call_status_name(p->to));
        reply_refuse(rq, 409, "CALL_GOES_FORWARD_ONLY", message.at);
    } else {
        reply_body(rq, "application/json", p->call);
        reply_send(rq, 200);
    }
}
