#include "api/read.h"

#include <stdio.h>
#include <string.h>

#include "api/db_request.h"
#include "base/json.h"

#define LIMIT_DEFAULT 50
#define LIMIT_MOST 200
#define PAGE_BYTES_MAX ((size_t)7 * 1024 * 1024) /* with one item that is larger than a page */

struct read {
    struct db_request db;
    struct pg_call call;
    struct list_page page;
    char id[37];
    const char *code, *message;
    struct str found; /* absent: 404 */
};

static struct read *read_of(struct db_request *db)
{
    return OWNER_OF(db, struct read, db);
}

static void answer(struct db_request *db)
{
    const struct read *r = read_of(db);
    if (!r->found.at) {
        reply_refuse(db->rq, 404, r->code, r->message);
        return;
    }
    reply_body(db->rq, "application/json", r->found);
    reply_send(db->rq, 200);
}

static enum err run_one(struct db_request *db, struct pg *pg)
{
    struct read *r = read_of(db);
    enum err e = pg_ask(pg, &r->call, db->job.deadline_ns);
    if (e || r->call.rows == 0)
        return e;
    r->found = arena_copy(db->rq->arena, pg_get(&r->call, 0, 0));
    return r->found.at ? OK : ERR_MEMORY;
}

void read_one(struct request *rq, struct pool *pool, const struct statement *ask, const char *id, const char *code,
              const char *message)
{
    struct read *r = db_request_new(rq, sizeof *r, run_one, answer);
    if (!r)
        return;
    (void)snprintf(r->id, sizeof r->id, "%s", id);
    r->call = (struct pg_call){.ask = ask, .args = {pg_text(r->id)}};
    r->code = code;
    r->message = message;
    db_request_start(&r->db, pool);
}

bool list_page_read(struct request *rq, struct list_page *ret)
{
    struct str after = request_query(rq, "after"), limit = request_query(rq, "limit");
    *ret = (struct list_page){NULL, LIMIT_DEFAULT};
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

static void write_page(const struct list_page *page, const struct pg_call *rows, struct buf *out)
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
    struct read *r = read_of(db);
    enum err e = pg_ask(pg, &r->call, db->job.deadline_ns);
    if (e)
        return e;
    AUTO(buf) struct buf out = buf_new(PAGE_BYTES_MAX);
    write_page(&r->page, &r->call, &out);
    r->found = arena_copy(db->rq->arena, buf_str(&out));
    return r->found.at ? OK : ERR_MEMORY;
}

void read_page(struct request *rq, struct pool *pool, const struct list_page *page, const struct pg_call *call)
{
    struct read *r = db_request_new(rq, sizeof *r, run_page, answer);
    if (!r)
        return;
    r->page = *page;
    r->call = *call;
    db_request_start(&r->db, pool);
}
