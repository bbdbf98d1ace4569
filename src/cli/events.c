/* `reclaim events`: the outbox as it fills, and what could not be delivered. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "events/broker.h"
#include "events/outbox.h"
#include "server/database.h"

#define PAGE 2000
#define LOOK_AGAIN 1000 /* positions before the newest: who drew one of them may commit late */
#define REMEMBERED 4096
#define LOOK_EVERY_MS 250
#define EVENT_CEILING ((size_t)4 * 1024 * 1024)
#define CONFIRM_NS (30 * NS_PER_S)

static int64_t soon(void)
{
    return clock_ns() + DATABASE_DEADLINE_NS;
}

/* --- tail --- */

struct tail {
    struct pg *pg;
    bool table;
    int64_t start, last;
    int64_t printed[REMEMBERED]; /* by position */
};

static enum err print_event(struct tail *t, const struct pg_call *rows, int row)
{
    if (t->table) {
        printf("%8" PRId64 "  %s  %-18s  %s  %" PRId64 "\n", pg_get_i64(rows, row, EVENT_POSITION),
               pg_get(rows, row, EVENT_TIME).at, pg_get(rows, row, EVENT_TYPE).at, pg_get(rows, row, EVENT_CUSTOMER).at,
               pg_get_i64(rows, row, EVENT_SEQUENCE));
    } else {
        AUTO(buf) struct buf line = buf_new(EVENT_CEILING);
        outbox_write_event(rows, row, &line);
        buf_addz(&line, "\n");
        struct str text = buf_str(&line);
        if (text.at)
            fwrite(text.at, 1, text.len, stdout);
    }
    return fflush(stdout) == 0 ? OK : ERR_CLOSED;
}

/* Everything behind `after` that was not printed yet; *ret_rows tells whether there may be more. */
static enum err print_page(struct tail *t, int64_t after, int *ret_rows, struct why *why)
{
    struct pg_call page = {.ask = &outbox_after, .args = {pg_i64(after), pg_i64(PAGE)}};
    enum err e = pg_ask(t->pg, &page, soon());
    if (e)
        return why_set(why, e, "the outbox cannot be read (%s %s)", err_name(e), page.sqlstate);
    for (int i = 0; i < page.rows; i++) {
        int64_t position = pg_get_i64(&page, i, EVENT_POSITION);
        int64_t *printed = &t->printed[position % REMEMBERED];
        if (*printed == position)
            continue;
        *printed = position;
        if (position > t->last)
            t->last = position;
        if (print_event(t, &page, i))
            return why_set(why, ERR_CLOSED, "the output could not be written");
    }
    *ret_rows = page.rows;
    return OK;
}

static enum err follow(struct tail *t, struct why *why)
{
    for (;;) {
        int64_t from = t->last - LOOK_AGAIN > t->start ? t->last - LOOK_AGAIN : t->start;
        int rows = 0;
        enum err e = print_page(t, from, &rows, why);
        while (!e && rows == PAGE)
            e = print_page(t, t->last, &rows, why);
        if (e)
            return e;
        struct pollfd reader = {1, 0, 0}; /* a pipe whose reader is gone ends this too */
        if (poll(&reader, 1, LOOK_EVERY_MS) > 0 && (reader.revents & (POLLERR | POLLNVAL)))
            return OK;
    }
}

static enum err tail_from(struct pg *pg, const char *from, bool table, struct why *why)
{
    struct tail *t = calloc(1, sizeof *t);
    if (!t)
        return why_set(why, ERR_MEMORY, "no memory");
    *t = (struct tail){.pg = pg, .table = table};
    enum err e = OK;
    if (from) {
        e = str_to_i64(str_of(from), 0, INT64_MAX, &t->start);
    } else {
        struct pg_call newest = {.ask = &outbox_newest};
        if ((e = pg_ask(pg, &newest, soon())))
            e = why_set(why, e, "the outbox cannot be read (%s %s)", err_name(e), newest.sqlstate);
        else
            t->start = pg_get_i64(&newest, 0, 0);
    }
    t->last = t->start;
    if (!e)
        e = follow(t, why);
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

static enum err list_events(struct pg *pg, int64_t *count, struct why *why)
{
    for (int64_t after = 0;;) {
        struct pg_call page = {.ask = &outbox_list_returned, .args = {pg_i64(after), pg_i64(PAGE)}};
        enum err e = pg_ask(pg, &page, soon());
        if (e)
            return why_set(why, e, "the returned events cannot be read (%s %s)", err_name(e), page.sqlstate);
        for (int i = 0; i < page.rows; i++) {
            after = pg_get_i64(&page, i, 0);
            printf("event    %s  %s  %s of %s, sequence %s: no queue was bound for it\n", pg_get(&page, i, 1).at,
                   pg_get(&page, i, 5).at, pg_get(&page, i, 2).at, pg_get(&page, i, 3).at, pg_get(&page, i, 4).at);
        }
        *count += page.rows;
        if (page.rows < PAGE)
            return OK;
    }
}

/* As JSON text, so that nothing in it can move the cursor of whoever looks. */
static void print_receipt(const struct broker_delivery *d)
{
    AUTO(buf) struct buf line = buf_new(65536);
    struct json_writer w = json_to(&line);
    json_str_cut(&w, str_of(d->reason), 300);
    buf_addz(&line, ": ");
    w = json_to(&line);
    json_str_cut(&w, d->body, 300);
    printf("receipt  %s  %.*s\n", d->id[0] ? d->id : "-", STR_ARGS(buf_str(&line)));
}

/* Left unacknowledged: all of it goes back when the connection ends. */
static enum err list_receipts(struct broker *b, int64_t *count, struct why *why)
{
    for (;;) {
        struct broker_delivery d;
        enum err e = broker_get(b, RECEIPTS_DEAD_QUEUE, &d, why);
        if (e)
            return e == ERR_MISSING ? OK : e;
        print_receipt(&d);
        broker_release(&d);
        ++*count;
    }
}

static enum err list_dead(const struct settings *s, struct pg *pg, struct why *why)
{
    int64_t events = 0, receipts = 0;
    AUTO(broker) struct broker *b = NULL;
    enum err e = list_events(pg, &events, why);
    if (e || (e = open_broker(s, &b, why)) || (b && (e = list_receipts(b, &receipts, why))))
        return e;
    printf("%" PRId64 " event%s, %" PRId64 " receipt%s\n", events, events == 1 ? "" : "s", receipts,
           receipts == 1 ? "" : "s");
    return OK;
}

static enum err send_again(struct broker *out, const struct broker_delivery *d, struct why *why)
{
    struct broker_message m = {.exchange = "",
                               .key = RECEIPTS_QUEUE,
                               .content_type = d->content_type[0] ? d->content_type : NULL,
                               .id = d->id,
                               .body = d->body};
    enum fate fate;
    enum err e = broker_publish(out, &m, why);
    if (e || (e = broker_settle(out, &fate, 1, CONFIRM_NS, why)))
        return e;
    return fate == FATE_TAKEN ? OK : why_set(why, ERR_CLOSED, "the queue " RECEIPTS_QUEUE " takes nothing");
}

/* A receipt that is refused again comes back, with a new id: what was there at the start is gone through once. */
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

static enum err redrive(const struct settings *s, struct pg *pg, const char *id, struct why *why)
{
    struct pg_call again = {.ask = &outbox_redrive, .args = {id ? pg_text(id) : pg_null()}};
    int64_t receipts = 0;
    AUTO(broker) struct broker *in = NULL;
    AUTO(broker) struct broker *out = NULL;
    enum err e = pg_ask(pg, &again, soon());
    if (e)
        return why_set(why, e, "the events could not be marked (%s %s)", err_name(e), again.sqlstate);
    int64_t events = pg_get_i64(&again, 0, 0);
    bool found = id && events > 0;
    if (!found && ((e = open_broker(s, &in, why)) || (e = open_broker(s, &out, why)) ||
                   (in && (e = redrive_receipts(in, out, id, &receipts, why)))))
        return e;
    if (id && events + receipts == 0)
        return why_set(why, ERR_MISSING, "there is no dead letter %s", id);
    printf("%" PRId64 " event%s, %" PRId64 " receipt%s sent again\n", events, events == 1 ? "" : "s", receipts,
           receipts == 1 ? "" : "s");
    return OK;
}

/* --- the command --- */

static int misused(const char *sentence)
{
    fprintf(stderr, "reclaim events: %s\n", sentence);
    return 2;
}

int command_events(int argc, char **argv)
{
    struct option_rule options[] = {{"--config", true, NULL}, {"--from", true, NULL}, {"--format", true, NULL}};
    int words;
    if (options_read(argc, argv, options, COUNT_OF(options), 2, &words))
        return 2;
    const char *verb = words ? argv[1] : "", *id = words == 2 ? argv[2] : NULL;
    const char *from = options[1].value, *format = options[2].value ? options[2].value : "json";
    bool tail = strcmp(verb, "tail") == 0, dead = strcmp(verb, "dead") == 0;
    int64_t position;
    if (!tail && !dead && strcmp(verb, "redrive") != 0)
        return misused("say tail, dead or redrive [ID]");
    if (id && (tail || dead || !str_is_uuid(str_of(id))))
        return misused("only redrive takes an id, a UUID as dead shows it");
    if ((from || options[2].value) && !tail)
        return misused("--from and --format go with tail");
    if (from && str_to_i64(str_of(from), 0, INT64_MAX, &position))
        return misused("--from takes a position, a number from 0 on");
    if (strcmp(format, "json") != 0 && strcmp(format, "table") != 0)
        return misused("--format is json or table");

    struct why why = {""};
    AUTO(settings) struct settings *s = NULL;
    AUTO(database) struct database db = {0};
    enum err e = settings_load(options[0].value, &s, &why);
    if (e || (e = database_open(s, &db, &why)))
        return command_failed("events", &why);
    e = tail   ? tail_from(db.pg, from, strcmp(format, "table") == 0, &why)
        : dead ? list_dead(s, db.pg, &why)
               : redrive(s, db.pg, id, &why);
    return e ? command_failed("events", &why) : 0;
}
