#include "mail/mailbox_page.h"

#include "base/clock.h"
#include "base/json.h"
#include "text/html.h"
#include "mail/mail.h"

#define PAGE_MAX ((size_t)200 * 1024)

struct view {
    struct job job;
    struct request *rq;
    bool as_json;
};

static void write_page(struct buf *out, const struct pg_call *mails)
{
    buf_addz(out,
             "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Mailbox</title>"
             "<meta name=\"viewport\" content=\"width=device-width\"><style>body{font:16px/1.5 system-ui,sans-serif;"
             "max-width:44rem;margin:2rem auto;padding:0 1rem}article{border:1px solid #8886;border-radius:8px;"
             "padding:0 1rem;margin:1rem 0}pre{white-space:pre-wrap}</style><h1>Mailbox</h1>");
    if (mails->rows == 0)
        buf_addz(out, "<p>No mail yet. Ask for a code, then reload this page.");
    for (int row = 0; row < mails->rows; row++) {
        char time[25];
        clock_format_ms(pg_get_i64(mails, row, 5), time);
        buf_addz(out, "<article><p><strong>");
        html_add_text(out, pg_get(mails, row, 2));
        buf_addz(out, "</strong><br>to ");
        html_add_text(out, pg_get(mails, row, 1));
        buf_addf(out, ", %s<pre>", time);
        html_add_text(out, pg_get(mails, row, 3));
        buf_addz(out, "</pre></article>");
    }
}

static void write_json(struct buf *out, const struct pg_call *mails)
{
    struct json_writer w = json_to(out);
    json_open(&w, '{');
    json_key(&w, "items");
    json_open(&w, '[');
    for (int row = 0; row < mails->rows; row++) {
        char time[25];
        clock_format_ms(pg_get_i64(mails, row, 5), time);
        json_open(&w, '{');
        json_key(&w, "to");
        json_str(&w, pg_get(mails, row, 1));
        json_key(&w, "subject");
        json_str(&w, pg_get(mails, row, 2));
        json_key(&w, "text");
        json_str(&w, pg_get(mails, row, 3));
        json_key(&w, "html");
        json_str(&w, pg_get(mails, row, 4));
        json_key(&w, "sent_at");
        json_str(&w, str_of(time));
        json_close(&w, '}');
    }
    json_close(&w, ']');
    json_close(&w, '}');
}

static enum err read_mails(struct job *job, struct pg *pg)
{
    struct view *view = OWNER_OF(job, struct view, job);
    struct pg_call mails = {.ask = &mailbox_newest};
    enum err e = pg_ask(pg, &mails, job->deadline_ns);
    if (e)
        return e;
    /* Whole mails only: fewer when they do not all fit. */
    AUTO(buf) struct buf out = buf_new(PAGE_MAX);
    do {
        buf_clear(&out);
        if (view->as_json)
            write_json(&out, &mails);
        else
            write_page(&out, &mails);
    } while (out.failed && (mails.rows /= 2) > 0);
    struct str page = out.failed ? str_of(NULL) : arena_copy(view->rq->arena, buf_str(&out));
    if (!page.at)
        return ERR_MEMORY;
    reply_body(view->rq, view->as_json ? "application/json" : "text/html; charset=utf-8", page);
    return OK;
}

static void mails_read(struct job *job, enum err e)
{
    struct view *view = OWNER_OF(job, struct view, job);
    if (e)
        refuse_by_status(view->rq, 503);
    reply_send(view->rq, e ? 503 : 200);
}

static void show(struct request *rq, bool as_json)
{
    struct mailbox *mailbox = rq->route->context;
    struct pool *pool = atomic_load(&mailbox->pool);
    struct view *view = arena_take(rq->arena, sizeof *view);
    if (view) {
        *view = (struct view){{read_mails, mails_read, rq->arrived_ns + 5 * NS_PER_S, rq->correlation_id}, rq, as_json};
        if (pool && pool_submit(pool, &view->job) == OK)
            return;
    }
    refuse_by_status(rq, 503);
    reply_send(rq, 503);
}

void mailbox_page(struct request *rq)
{
    show(rq, false);
}

void mailbox_json(struct request *rq)
{
    show(rq, true);
}
