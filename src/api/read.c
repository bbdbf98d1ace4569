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
    struct pg_call call, extra;
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
    if (e || r->call.rows == 0 || pg_is_null(&r->call, 0, 0))
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

void read_object(struct request *rq, struct pool *pool, const struct pg_call *call, const char *code,
                 const char *message)
{
    struct read *r = db_request_new(rq, sizeof *r, run_one, answer);
    if (!r)
        return;
    r->call = *call;
    r->code = code;
    r->message = message;
    db_request_start(&r->db, pool);
}

static bool is_place(struct str text, const char *parts)
{
    int64_t number;
    for (struct str part; *parts; parts++) {
        if (!str_split(&text, '-', &part)) {
            part = text;
            text = (struct str){"", 0};
            if (parts[1])
                return false;
        }
        if (*parts == 'l' ? part.len != 1 || *part.at < 'a' || *part.at > 'z'
                          : str_to_i64(part, 0, INT64_MAX / 2, &number) != OK)
            return false;
    }
    return text.len == 0;
}

/* `parts` is NULL where pages go by id. */
static bool read_query(struct request *rq, const char *parts, struct list_page *ret)
{
    struct str after = request_query(rq, "after"), limit = request_query(rq, "limit");
    *ret = (struct list_page){.limit = LIMIT_DEFAULT};
    if (after.len && !(parts ? is_place(after, parts) : str_is_uuid(after))) {
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

bool list_page_read(struct request *rq, struct list_page *ret)
{
    return read_query(rq, NULL, ret);
}

bool list_page_read_place(struct request *rq, const char *letters, struct list_page *ret)
{
    return read_query(rq, letters, ret);
}

static void write_page(const struct list_page *page, const struct pg_call *rows, const struct pg_call *extra,
                       struct buf *out)
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
    if (page->extra_name) {
        json_key(&w, page->extra_name);
        json_raw(&w, pg_get(extra, 0, 0));
    }
    json_close(&w, '}');
}

static enum err run_page(struct db_request *db, struct pg *pg)
{
    struct read *r = read_of(db);
    struct pg_call calls[] = {r->call, r->extra};
    enum err e = pg_trip(pg, calls, r->page.extra_name ? 2 : 1, db->job.deadline_ns);
    if (e)
        return e;
    AUTO(buf) struct buf out = buf_new(PAGE_BYTES_MAX);
    write_page(&r->page, &calls[0], &calls[1], &out);
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
    if (page->extra)
        r->extra = *page->extra;
    db_request_start(&r->db, pool);
}
