/* The local mailbox: the table that takes mails when no provider is configured, for demonstrations. */
#include "mail/inside.h"

#define BATCH_MOST 64
#define WAITING_MOST 16384
#define MAILS_MAX ((size_t)1 << 20)

static const struct statement mailbox_put = {
    .name = "mailbox_put",
    .sql = "INSERT INTO reclaim.mailbox (recipient, subject, body_text, body_html)"
           " SELECT m.recipient, m.subject, m.body_text, m.body_html FROM pg_catalog.jsonb_to_recordset($1::jsonb)"
           " AS m(recipient text, subject text, body_text text, body_html text)",
    .params = 1,
    .columns = "",
};

/* Deletes all but the newest, from where the last run ended ($1): deleted rows stay in the index until a vacuum, and each
 * run would pass them again. */
static const struct statement mailbox_prune = {
    .name = "mailbox_prune",
    .sql = "WITH bound AS (SELECT id FROM reclaim.mailbox ORDER BY id DESC OFFSET 199 LIMIT 1),"
           " gone AS (DELETE FROM reclaim.mailbox WHERE id >= $1::int8 AND id < (SELECT id FROM bound))"
           " SELECT id FROM bound",
    .params = 1,
    .columns = "id:int8",
};

const struct statement mailbox_newest = {
    .name = "mailbox_newest",
    .sql = "SELECT id, recipient, subject, body_text, body_html,"
           " (pg_catalog.date_part('epoch', created_at) * 1000000)::int8 AS created_us"
           " FROM reclaim.mailbox ORDER BY id DESC LIMIT 200",
    .params = 0,
    .columns = "id:int8 recipient:text subject:text body_text:text body_html:text created_us:int8",
};

const struct statement *const mail_statements[] = {&mailbox_put, &mailbox_prune, &mailbox_newest};
const size_t mail_statement_count = COUNT_OF(mail_statements);

static struct delivery *delivery_of(struct batch_item *item)
{
    return OWNER_OF(item, struct delivery, in_mailbox);
}

static void add_mail(struct json_writer *w, const struct mail *mail)
{
    json_open(w, '{');
    json_key(w, "recipient");
    json_str(w, str_of(mail->to));
    json_key(w, "subject");
    json_str(w, str_of(mail->subject));
    json_key(w, "body_text");
    json_str(w, buf_str(&mail->text));
    json_key(w, "body_html");
    json_str(w, buf_str(&mail->html));
    json_close(w, '}');
}

static enum err put(void *context, struct pg *pg, struct batch_item **items, size_t count)
{
    struct post *post = context;
    AUTO(buf) struct buf mails = buf_new(MAILS_MAX);
    struct json_writer w = json_to(&mails);
    json_open(&w, '[');
    for (size_t i = 0; i < count; i++)
        add_mail(&w, &delivery_of(items[i])->mail);
    json_close(&w, ']');
    if (mails.failed)
        return mails.failed;
    struct pg_call calls[] = {{.ask = &mailbox_put, .args = {pg_text(mails.at)}},
                              {.ask = &mailbox_prune, .args = {pg_i64(post->pruned_to)}}};
    enum err e = pg_trip(pg, calls, COUNT_OF(calls), clock_ns() + post->try_ns);
    if (!e && calls[1].rows == 1)
        post->pruned_to = pg_get_i64(&calls[1], 0, 0);
    return e;
}

static void report_put(struct work_note *note)
{
    struct delivery *d = OWNER_OF(note, struct delivery, note);
    delivery_tried(d, d->err ? TRY_AGAIN : TRY_DELIVERED, 0, d->err);
}

static void put_done(void *context, struct batch_item *item, enum err e)
{
    (void)context;
    struct delivery *d = delivery_of(item);
    d->err = e;
    work_post(d->item->engine, &d->note);
}

static enum err begin(struct delivery *d)
{
    struct post *post = d->post;
    struct batch_config config = {.pool = work_pool(d->item->engine),
                                  .most = BATCH_MOST,
                                  .capacity = WAITING_MOST,
                                  .in_flight = 1,
                                  .limit_ns = post->try_ns,
                                  .context = post,
                                  .run = put,
                                  .done = put_done};
    if (!post->mailbox && !(post->mailbox = batch_new(&config)))
        return ERR_MEMORY;
    d->note.run = report_put;
    return batch_add(post->mailbox, &d->in_mailbox);
}

/* A batch that a worker has begun cannot be cancelled; it ends soon. */
static bool cancel(struct delivery *d)
{
    (void)d;
    return false;
}

void provider_mailbox(struct provider *p)
{
    *p = (struct provider){.name = "mailbox", .begin = begin, .cancel = cancel};
}
