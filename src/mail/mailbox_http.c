#include "mail/mailbox_http.h"

#include "base/clock.h"
#include "base/json.h"
#include "mail/mail.h"

#define LIST_MAX ((size_t)2 * 1024 * 1024)

struct view {
    struct job job;
    struct request *rq;
};

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
        json_key(&w, "id");
        json_i64(&w, pg_get_i64(mails, row, 0));
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
    AUTO(buf) struct buf out = buf_new(LIST_MAX);
    do {
        buf_clear(&out);
        write_json(&out, &mails);
    } while (out.failed && (mails.rows /= 2) > 0);
    struct str list = out.failed ? str_of(NULL) : arena_copy(view->rq->arena, buf_str(&out));
    if (!list.at)
        return ERR_MEMORY;
    reply_body(view->rq, "application/json", list);
    return OK;
}

static void mails_read(struct job *job, enum err e)
{
    struct view *view = OWNER_OF(job, struct view, job);
    if (e)
        refuse_by_status(view->rq, 503);
    reply_send(view->rq, e ? 503 : 200);
}

void mailbox_handle(struct request *rq)
{
    struct mailbox *mailbox = rq->route->context;
    struct pool *pool = atomic_load(&mailbox->pool);
    struct view *view = arena_take(rq->arena, sizeof *view);
    if (view) {
        *view = (struct view){{read_mails, mails_read, rq->arrived_ns + 5 * NS_PER_S, rq->correlation_id}, rq};
        if (pool && pool_submit(pool, &view->job) == OK)
            return;
    }
    refuse_by_status(rq, 503);
    reply_send(rq, 503);
}
