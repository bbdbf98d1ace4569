/* GET /v1/events/dead and POST /v1/events/dead/{id}/redrive: events that no queue took and work that failed too often. */
#include "api/db_request.h"
#include "api/read.h"
#include "base/json.h"
#include "console/statements.h"
#include "events/outbox.h"
#include "pg/tx.h"
#include "work/work.h"

const struct statement dead_read = {
    .name = "console_dead",
    .sql = "SELECT d.id, d.object FROM reclaim.dead_letters($1, $2::int8) d",
    .params = 2,
    .columns = "id:text object:text",
};

struct redrive_request {
    struct db_request db;
    const struct caller *caller;
    char id[37]; /* of an event, or the number of a work item */
    bool is_event, found;
};

static enum err run_redrive(struct db_request *db, struct pg *pg);
static void answer_redrive(struct db_request *db);

void dead_letters_handle(struct request *rq, const struct caller *caller, void *console)
{
    (void)caller;
    struct console *c = console;
    struct list_page page;
    if (!list_page_read_place(rq, "ln", &page))
        return;
    struct pg_call call = {.ask = &dead_read, .args = {pg_text_or_null(page.after), pg_i64(page.limit + 1)}};
    read_page(rq, atomic_load(&c->pool), &page, &call);
}

/* 1. On the loop. */
void dead_redrive_handle(struct request *rq, const struct caller *caller, void *console)
{
    struct console *c = console;
    struct redrive_request *r = db_request_new(rq, sizeof *r, run_redrive, answer_redrive);
    int64_t number;
    if (!r)
        return;
    r->caller = caller;
    r->is_event = str_is_uuid(rq->params[0]);
    if ((!r->is_event && str_to_i64(rq->params[0], 1, INT64_MAX, &number)) ||
        str_copy(rq->params[0], r->id, sizeof r->id)) {
        reply_refuse(rq, 400, "INVALID_ID", "The id in the address is that of a dead letter: a UUID, or a number.");
        return;
    }
    db_request_start(&r->db, atomic_load(&c->pool));
}

/* 2. On a worker. */
static enum err run_redrive(struct db_request *db, struct pg *pg)
{
    struct redrive_request *r = OWNER_OF(db, struct redrive_request, db);
    struct pg_call again = {.ask = r->is_event ? &outbox_redrive : &work_redrive, .args = {pg_text(r->id)}};
    AUTO(tx) struct tx *tx = tx_begin(pg, db->job.deadline_ns);
    enum err e = tx_trip(tx, &again, 1);
    if (e)
        return e;
    r->found = r->is_event ? pg_get_i64(&again, 0, 0) > 0 : again.rows > 0;
    struct pg_call log = console_audit(db->rq, r->caller, NULL, "redrive",
                                       arena_printf(db->rq->arena, "%s %s", r->is_event ? "event" : "work", r->id).at);
    return tx_commit(tx, &log, r->found ? 1 : 0);
}

/* 3. On the same worker. */
static void answer_redrive(struct db_request *db)
{
    if (!OWNER_OF(db, struct redrive_request, db)->found) {
        reply_refuse(db->rq, 404, "DEAD_LETTER_NOT_FOUND", "There is no dead letter with this id, or no more.");
        return;
    }
    reply_body(db->rq, "application/json", STR("{\"redriven\":1}"));
    reply_send(db->rq, 200);
}
