/* What admins may do to any customer, and what a customer may see of itself. */
#include <string.h>

#include "base/json.h"
#include "customers/changing.h"
#include "customers/statements.h"

#define LIST_DEFAULT 50
#define LIST_MOST 200
#define LIST_BYTES ((size_t)192 * 1024) /* of one page; what does not fit comes with the next */

static void change_named(struct request *rq, const struct caller *caller, struct customers *room,
                         enum customer_event event)
{
    char *id = request_work(rq, 37);
    if (!id) {
        reply_fault(rq, ERR_FULL);
        return;
    }
    if (!request_id(rq, 0, id))
        return;
    struct actor actor = actor_of(rq, caller);
    change_over_http(rq, room, id, event, &actor);
}

void customer_freeze_handle(struct request *rq, const struct caller *caller, void *customers)
{
    change_named(rq, caller, customers, EVENT_FREEZE);
}

void customer_recover_handle(struct request *rq, const struct caller *caller, void *customers)
{
    change_named(rq, caller, customers, EVENT_RECOVER);
}

struct showing {
    struct errand errand;
    char id[37];
    bool found;
    struct str object;
};

static enum err run_show(struct errand *errand, struct pg *pg)
{
    struct showing *s = OWNER_OF(errand, struct showing, errand);
    struct pg_call call = {.ask = &customer_show, .args = {pg_text(s->id)}};
    enum err e = pg_ask(pg, &call, errand->job.deadline_ns);
    if (e)
        return e;
    s->found = call.rows == 1;
    if (s->found)
        s->object = arena_copy(errand->rq->arena, pg_get(&call, 0, 0));
    return s->found && !s->object.at ? ERR_MEMORY : OK;
}

static void answer_show(struct errand *errand)
{
    struct showing *s = OWNER_OF(errand, struct showing, errand);
    if (!s->found) {
        reply_refuse(errand->rq, 404, "CUSTOMER_NOT_FOUND", "There is no customer with this id.");
        return;
    }
    reply_body(errand->rq, "application/json", s->object);
    reply_send(errand->rq, 200);
}

void customer_show_handle(struct request *rq, const struct caller *caller, void *customers)
{
    struct customers *room = customers;
    struct showing *s = errand_new(rq, sizeof *s, run_show, answer_show);
    if (!s || !request_id(rq, 0, s->id))
        return;
    if (!caller->admin && strcmp(s->id, caller->customer_id) != 0) {
        if (caller->standing == CUSTOMER_FROZEN)
            who_refuse_frozen(room->who, rq, caller);
        else
            reply_refuse(rq, 403, "FORBIDDEN", "These credentials may not see this customer.");
        return;
    }
    errand_go(&s->errand, atomic_load(&room->pool));
}

struct listing {
    struct errand errand;
    const char *status, *after; /* NULL: any, from the start */
    int64_t limit;
    struct str page;
};

/* One more than asked for tells whether there is a next page. */
static void write_page(const struct listing *l, const struct pg_call *rows, struct buf *out)
{
    struct json_writer w = json_to(out);
    struct str last = {NULL, 0};
    int row = 0;
    json_open(&w, '{');
    json_key(&w, "items");
    json_open(&w, '[');
    for (; row < rows->rows && row < l->limit; row++) {
        struct str object = pg_get(rows, row, 1);
        if (row > 0 && out->len + object.len > LIST_BYTES)
            break;
        json_raw(&w, object);
        last = pg_get(rows, row, 0);
    }
    json_close(&w, ']');
    json_key(&w, "next");
    json_str(&w, row < rows->rows ? last : (struct str){NULL, 0});
    json_close(&w, '}');
}

static enum err run_list(struct errand *errand, struct pg *pg)
{
    struct listing *l = OWNER_OF(errand, struct listing, errand);
    struct pg_call call = {.ask = &customers_list,
                           .args = {l->status ? pg_text(l->status) : pg_null(),
                                    l->after ? pg_text(l->after) : pg_null(), pg_i64(l->limit + 1)}};
    enum err e = pg_ask(pg, &call, errand->job.deadline_ns);
    if (e)
        return e;
    AUTO(buf) struct buf out = buf_new((size_t)240 * 1024);
    write_page(l, &call, &out);
    l->page = arena_copy(errand->rq->arena, buf_str(&out));
    return l->page.at ? OK : ERR_MEMORY;
}

static void answer_list(struct errand *errand)
{
    reply_body(errand->rq, "application/json", OWNER_OF(errand, struct listing, errand)->page);
    reply_send(errand->rq, 200);
}

void customers_list_handle(struct request *rq, const struct caller *caller, void *customers)
{
    (void)caller;
    struct customers *room = customers;
    struct listing *l = errand_new(rq, sizeof *l, run_list, answer_list);
    if (!l)
        return;
    struct str status = request_query(rq, "status"), after = request_query(rq, "after"),
               limit = request_query(rq, "limit");
    enum customer_state state;
    l->limit = LIST_DEFAULT;
    if (status.len && state_parse(status, &state)) {
        reply_refuse(rq, 400, "INVALID_STATUS", "status is active, frozen or deleted.");
        return;
    }
    if (after.len && !str_is_uuid(after)) {
        reply_refuse(rq, 400, "INVALID_ID", "after is the \"next\" of the page before.");
        return;
    }
    if (limit.len && str_to_i64(limit, 1, LIST_MOST, &l->limit)) {
        reply_refuse(rq, 400, "INVALID_LIMIT", "limit is a number from 1 to 200.");
        return;
    }
    l->status = status.len ? state_name(state) : NULL;
    l->after = after.len ? arena_copy(rq->arena, after).at : NULL;
    errand_go(&l->errand, atomic_load(&room->pool));
}
