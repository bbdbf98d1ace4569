#include "api/read.h"

#include <stdio.h>

#include "api/db_request.h"
#include "base/json.h"

#define LIMIT_DEFAULT 50
#define LIMIT_MOST 200
#define PAGE_BYTES ((size_t)192 * 1024) /* what does not fit comes with the next page */
#define PAGE_ROOM ((size_t)240 * 1024)

struct looking {
    struct db_request db;
    struct pg_call call;
    struct page page;
    char id[37];
    const char *code, *message;
    struct str found; /* absent: there is none */
};

static struct looking *looking(struct db_request *db)
{
    return OWNER_OF(db, struct looking, db);
}

static void answer(struct db_request *db)
{
    const struct looking *l = looking(db);
    if (!l->found.at) {
        reply_refuse(db->rq, 404, l->code, l->message);
        return;
    }
    reply_body(db->rq, "application/json", l->found);
    reply_send(db->rq, 200);
}

static enum err run_one(struct db_request *db, struct pg *pg)
{
    struct looking *l = looking(db);
    enum err e = pg_ask(pg, &l->call, db->job.deadline_ns);
    if (e || l->call.rows == 0)
        return e;
    l->found = arena_copy(db->rq->arena, pg_get(&l->call, 0, 0));
    return l->found.at ? OK : ERR_MEMORY;
}

void read_one(struct request *rq, struct pool *pool, const struct statement *ask, const char *id, const char *code,
              const char *message)
{
    struct looking *l = db_request_new(rq, sizeof *l, run_one, answer);
    if (!l)
        return;
    (void)snprintf(l->id, sizeof l->id, "%s", id);
    l->call = (struct pg_call){.ask = ask, .args = {pg_text(l->id)}};
    l->code = code;
    l->message = message;
    db_request_start(&l->db, pool);
}

bool page_read(struct request *rq, struct page *ret)
{
    struct str after = request_query(rq, "after"), limit = request_query(rq, "limit");
    *ret = (struct page){NULL, LIMIT_DEFAULT};
    if (after.len && !str_is_uuid(after)) {
        reply_refuse(rq, 400, "INVALID_ID", "after is the \"next\" of the page before.");
        return false;
    }
    if (limit.len && str_to_i64(limit, 1, LIMIT_MOST, &ret->limit)) {
        reply_refuse(rq, 400, "INVALID_LIMIT", "limit is a number from 1 to 200.");
        return false;
    }
    if (after.len)
        ret->after = arena_copy(rq->arena, after).at;
    return true;
}

static void write_page(const struct page *page, const struct pg_call *rows, struct buf *out)
{
    struct json_writer w = json_to(out);
    struct str last = {NULL, 0};
    int row = 0;
    json_open(&w, '{');
    json_key(&w, "items");
    json_open(&w, '[');
    for (; row < rows->rows && row < page->limit; row++) {
        struct str object = pg_get(rows, row, 1);
        if (row > 0 && out->len + object.len > PAGE_BYTES)
            break;
        json_raw(&w, object);
        last = pg_get(rows, row, 0);
    }
    json_close(&w, ']');
    json_key(&w, "next");
    json_str(&w, row < rows->rows ? last : (struct str){NULL, 0});
    json_close(&w, '}');
}

static enum err run_page(struct db_request *db, struct pg *pg)
{
    struct looking *l = looking(db);
    enum err e = pg_ask(pg, &l->call, db->job.deadline_ns);
    if (e)
        return e;
    AUTO(buf) struct buf out = buf_new(PAGE_ROOM);
    write_page(&l->page, &l->call, &out);
    l->found = arena_copy(db->rq->arena, buf_str(&out));
    return l->found.at ? OK : ERR_MEMORY;
}

void read_page(struct request *rq, struct pool *pool, const struct page *page, const struct pg_call *call)
{
    struct looking *l = db_request_new(rq, sizeof *l, run_page, answer);
    if (!l)
        return;
    l->page = *page;
    l->call = *call;
    db_request_start(&l->db, pool);
}
