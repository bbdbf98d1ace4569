/* `reclaim events`: the outbox as it fills, and what could not be delivered. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/commands.h"
#include "events/broker.h"
#include "events/outbox.h"
#include "pg/arrays.h"
#include "server/database.h"

#define PAGE 2000
#define READ_AGAIN 1000 /* positions before the newest: a transaction that drew one of them may commit late */
#define REMEMBERED 4096
#define READ_EVERY_MS 250
#define SKIP_BYTES ((size_t)READ_AGAIN * 24)
#define CONFIRM_NS (30 * NS_PER_S)

/* --- tail --- */

static const struct report_column tail_columns[] = {
    {.name = "position", .kind = REPORT_NUMBER, .width = 8},
    {.name = "time", .width = 27},
    {.name = "type", .width = 18},
    {.name = "customer_id", .width = 36},
    {.name = "epoch", .kind = REPORT_NUMBER, .width = 5},
    {.name = "sequence", .kind = REPORT_NUMBER},
};
static const struct report_shape tail_shape = {tail_columns, COUNT_OF(tail_columns), false, "", NULL};

struct tail {
    struct report *report; /* NULL: a CloudEvent a line */
    int64_t start, last;
    int64_t printed[REMEMBERED]; /* by position */
};

static enum err print_event(struct tail *t, const struct pg_call *rows, int row, struct why *why)
{
    static const int shown[] = {EVENT_POSITION, EVENT_TIME, EVENT_TYPE, EVENT_CUSTOMER, EVENT_EPOCH, EVENT_SEQUENCE};
    if (t->report) {
        for (size_t i = 0; i < COUNT_OF(shown); i++)
            report_text(t->report, pg_get(rows, row, shown[i]));
        return report_flush(t->report, why);
    }
    AUTO(buf) struct buf line = buf_new(EVENT_BYTES_MAX + 1);
    outbox_write_event(rows, row, &line);
    buf_addz(&line, "\n");
    struct str text = buf_str(&line);
    if (!text.at)
        return why_set(why, ERR_MEMORY, "no memory for an event");
    fwrite(text.at, 1, text.len, stdout);
    return fflush(stdout) == 0 ? OK : why_set(why, ERR_CLOSED, "the output could not be written");
}

static void list_printed(const struct tail *t, int64_t after, struct buf *ret)
{
    for (int64_t position = after + 1; position <= t->last && position <= after + READ_AGAIN; position++)
        if (t->printed[position % REMEMBERED] == position)
            array_add_i64(ret, position);
}

/* Prints the next events behind `after` that were not printed before. */
static enum err print_page(struct command_context *c, struct tail *t, int64_t after, bool *ret_more)
{
    AUTO(buf) struct buf printed_before = buf_new(SKIP_BYTES);
    list_printed(t, after, &printed_before);
    struct pg_call page = {.ask = &outbox_after,
                           .args = {pg_i64(after), pg_i64(PAGE), pg_text(array_end(&printed_before))}};
    enum err e = command_ask(c, &page);
    if (e)
        return why_set(&c->why, e, "the outbox cannot be read (%s %s)", err_name(e), page.sqlstate);
    for (int i = 0; !e && i < page.rows; i++) {
        int64_t position = pg_get_i64(&page, i, EVENT_POSITION);
        t->printed[position % REMEMBERED] = position;
        if (position > t->last)
            t->last = position;
        e = print_event(t, &page, i, &c->why);
    }
    *ret_more = outbox_has_more(&page, PAGE);
    return e;
}

/* Until the reader of a pipe has closed it. A page that failed with a conflict is read again at the next turn. */
static enum err follow(struct command_context *c, struct tail *t)
{
    for (;;) {
        int64_t from = t->last - READ_AGAIN > t->start ? t->last - READ_AGAIN : t->start;
        bool more = false;
        enum err e = print_page(c, t, from, &more);
        while (!e && more)
            e = print_page(c, t, t->last, &more);
        if (e && e != ERR_CONFLICT)
            return e;
        struct pollfd reader = {1, 0, 0};
        if (poll(&reader, 1, READ_EVERY_MS) > 0 && (reader.revents & (POLLERR | POLLNVAL)))
            return OK;
    }
}

static enum err find_start(struct command_context *c, int64_t *ret)
{
    const char *from = option(c, "--from");
    struct pg_call newest = {.ask = &outbox_newest};
    if (from)
        return str_to_i64(str_of(from), 0, INT64_MAX, ret);
    enum err e = command_ask(c, &newest);
    if (e)
        return why_set(&c->why, e, "the outbox cannot be read (%s %s)", err_name(e), newest.sqlstate);
    *ret = pg_get_i64(&newest, 0, 0);
    return OK;
}

static enum err tail(struct command_context *c)
{
    bool json = !c->format_given || c->format == REPORT_JSON;
    AUTO(report) struct report *report = json ? NULL : report_new(&tail_shape, c->format);
    struct tail *t = json || report ? calloc(1, sizeof *t) : NULL;
    if (!t)
        return why_set(&c->why, ERR_MEMORY, "no memory");
    t->report = report;
    enum err e = find_start(c, &t->start);
    t->last = t->start;
    if (!e)
        e = follow(c, t);
    free(t);
    return e;
}

/* --- dead letters --- */

static enum err open_broker(const struct settings *s, struct broker **ret, struct why *why)
{
    *ret = NULL;
    if (!s->amqp_url)
        return OK;
    struct broker *b = broker_new(s->amqp_url, why);
    enum err e = b ? broker_connect(b, why) : ERR_MEMORY;
    if (!e)
        e = broker_declare(b, why);
    if (e) {
        broker_free(b);
        return e;
    }
    *ret = b;
    return OK;
}

/* A table has one text in place of the data: for an event its type and customer, for a receipt the reason and the message. */
static const struct report_column dead_columns[] = {
    {.name = "kind", .width = 7},
    {.name = "id"},
    {.name = "returned_at", .where = IN_DATA},
    {.name = "type", .where = IN_DATA},
    {.name = "customer_id", .where = IN_DATA},
    {.name = "epoch", .kind = REPORT_NUMBER, .where = IN_DATA},
    {.name = "sequence", .kind = REPORT_NUMBER, .where = IN_DATA},
    {.name = "reason", .where = IN_DATA},
    {.name = "message", .where = IN_DATA},
    {.name = "what", .where = IN_TABLE},
};
static const struct report_shape dead_shape = {dead_columns, COUNT_OF(dead_columns), false, "-", NULL};

static void add_event(struct report *r, const struct pg_call *page, int row)
{
    AUTO(buf) struct buf what = buf_new(4096);
    buf_addf(&what, "%s  %s of %s, epoch %s, sequence %s: %s", pg_get(page, row, 6).at, pg_get(page, row, 2).at,
             pg_get(page, row, 3).at, pg_get(page, row, 4).at, pg_get(page, row, 5).at, pg_get(page, row, 7).at);
    report_text(r, STR("event"));
    report_text(r, pg_get(page, row, 1));
    report_text(r, pg_get(page, row, 6));
    for (int column = 2; column <= 5; column++)
        report_text(r, pg_get(page, row, column));
    report_text(r, pg_get(page, row, 7));
    report_null(r);
    report_text(r, buf_str(&what));
}

static enum err list_events(struct command_context *c, struct report *r, int64_t *count)
{
    for (int64_t after = 0;;) {
        struct pg_call page = {.ask = &outbox_list_returned, .args = {pg_i64(after), pg_i64(PAGE)}};
        enum err e = command_ask(c, &page);
        if (e)
            return why_set(&c->why, e, "the returned events cannot be read (%s %s)", err_name(e), page.sqlstate);
        for (int i = 0; i < page.rows; i++) {
            after = pg_get_i64(&page, i, 0);
            add_event(r, &page, i);
        }
        *count += page.rows;
        if (page.rows < PAGE)
            return OK;
    }
}

/* The text is two JSON strings, each cut after 300 bytes. */
static void add_receipt(struct report *r, const struct broker_delivery *d)
{
    AUTO(buf) struct buf what = buf_new(65536);
    struct json_writer w = json_to(&what);
    json_str_cut(&w, str_of(d->reason), 300);
    buf_addz(&what, ": ");
    w = json_to(&what);
    json_str_cut(&w, d->body, 300);
    report_text(r, STR("receipt"));
    report_text(r, d->id[0] ? str_of(d->id) : (struct str){0});
    for (int column = 2; column <= 6; column++)
        report_null(r);
    report_text(r, str_of(d->reason));
    report_text(r, d->body);
    report_text(r, buf_str(&what));
}

/* The messages are not acknowledged, so RabbitMQ puts them back when the connection ends. */
static enum err list_receipts(struct command_context *c, struct broker *b, struct report *r, int64_t *count)
{
    for (;;) {
        struct broker_delivery d;
        enum err e = broker_get(b, RECEIPTS_DEAD_QUEUE, &d, &c->why);
        if (e)
            return e == ERR_MISSING ? OK : e;
        add_receipt(r, &d);
        broker_release(&d);
        ++*count;
    }
}

static void print_counts(int64_t events, int64_t receipts, const char *done)
{
    printf("%lld event%s, %lld receipt%s%s\n", (long long)events, events == 1 ? "" : "s", (long long)receipts,
           receipts == 1 ? "" : "s", done);
}

static enum err list_dead(struct command_context *c)
{
    int64_t events = 0, receipts = 0;
    AUTO(broker) struct broker *b = NULL;
    AUTO(report) struct report *r = report_new(&dead_shape, c->format);
    enum err e = list_events(c, r, &events);
    if (e || (e = open_broker(c->settings, &b, &c->why)) ||
        (b && ((e = list_receipts(c, b, r, &receipts)) || (e = broker_close(b, &c->why)))))
        return e;
    if ((e = report_print(r, &c->why)) == OK && c->format == REPORT_TABLE)
        print_counts(events, receipts, "");
    return e;
}

static enum err send_again(struct broker *out, const struct broker_delivery *d, struct why *why)
{
    struct broker_message m = {.exchange = "",
                               .key = RECEIPTS_QUEUE,
                               .content_type = d->content_type[0] ? d->content_type : NULL,
                               .id = d->id,
                               .body = d->body};
    enum publish_result publish_result;
    enum err e = broker_publish(out, &m, why);
    if (e || (e = broker_await_confirms(out, &publish_result, 1, CONFIRM_NS, why)))
        return e;
    return publish_result == PUBLISH_CONFIRMED
               ? OK
               : why_set(why, ERR_CLOSED, "the queue " RECEIPTS_QUEUE " accepts no messages");
}

/* A receipt that is refused again returns to the queue with a new id, so only as many are taken as there were at the start. */
static enum err redrive_receipts(struct broker *in, struct broker *out, const char *id, int64_t *count, struct why *why)
{
    enum err e = OK;
    int64_t left = 1;
    for (bool first = true; !e && left > 0; left--, first = false) {
        struct broker_delivery d;
        e = broker_get(in, RECEIPTS_DEAD_QUEUE, &d, why);
        if (e)
            return e == ERR_MISSING ? OK : e;
        left += first ? d.behind : 0;
        bool wanted = !id || strcmp(id, d.id) == 0;
        if (wanted && (e = send_again(out, &d, why)) == OK && (e = broker_ack(in, d.tag, why)) == OK)
            ++*count;
        broker_release(&d);
        if (wanted && id)
            break;
    }
    return e;
}

static enum err redrive(struct command_context *c)
{
    const char *id = c->word_count > 1 ? word(c, 1) : NULL;
    struct pg_call again = {.ask = &outbox_redrive, .args = {id ? pg_text(id) : pg_null()}};
    int64_t receipts = 0;
    AUTO(broker) struct broker *in = NULL;
    AUTO(broker) struct broker *out = NULL;
    enum err e = command_ask(c, &again);
    if (e)
        return why_set(&c->why, e, "the events could not be marked (%s %s)", err_name(e), again.sqlstate);
    int64_t events = pg_get_i64(&again, 0, 0);
    bool found = id && events > 0;
    if (!found && ((e = open_broker(c->settings, &in, &c->why)) || (e = open_broker(c->settings, &out, &c->why)) ||
                   (in && ((e = redrive_receipts(in, out, id, &receipts, &c->why)) || (e = broker_close(in, &c->why)) ||
                           (e = broker_close(out, &c->why))))))
        return e;
    if (id && events + receipts == 0)
        return why_set(&c->why, ERR_MISSING, "there is no dead letter %s", id);
    print_counts(events, receipts, " sent again");
    return OK;
}

/* --- the command --- */

enum err events_read(struct command_context *c)
{
    const char *verb = word(c, 0), *from = option(c, "--from");
    bool tails = strcmp(verb, "tail") == 0, lists = strcmp(verb, "dead") == 0;
    int64_t position;
    if (!tails && !lists && strcmp(verb, "redrive") != 0)
        return why_set(&c->why, ERR_INPUT, "say tail, dead or redrive [ID]");
    if (c->word_count > 1 && (tails || lists || !str_is_uuid(str_of(word(c, 1)))))
        return why_set(&c->why, ERR_INPUT, "only redrive takes an id, a UUID as dead shows it");
    if (from && !tails)
        return why_set(&c->why, ERR_INPUT, "--from goes with tail");
    if (c->format_given && !tails && !lists)
        return why_set(&c->why, ERR_INPUT, "--format goes with tail and dead");
    if (from && str_to_i64(str_of(from), 0, INT64_MAX, &position))
        return why_set(&c->why, ERR_INPUT, "--from takes a position, a number from 0 on");
    return OK;
}

enum err events_command(struct command_context *c)
{
    const char *verb = word(c, 0);
    return strcmp(verb, "tail") == 0 ? tail(c) : strcmp(verb, "dead") == 0 ? list_dead(c) : redrive(c);
}
