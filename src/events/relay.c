#include "events/relay.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/backoff.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/stop.h"
#include "events/broker.h"
#include "events/floor.h"
#include "events/outbox.h"
#include "pg/arrays.h"
#include "pg/listener.h"

#define BATCH BROKER_BATCH_MAX
#define READ_EVERY_MS 1000
#define TRIP_NS (30 * NS_PER_S)
#define CONNECT_NS (5 * NS_PER_S)
#define CONFIRM_NS (30 * NS_PER_S)
#define STOP_MS 2000
static const struct backoff retrying = {100 * NS_PER_MS, 5 * NS_PER_S};
#define LIST_MAX ((size_t)64 * BATCH)     /* two batches, if a read failed between them */
#define REASONS_MAX ((size_t)640 * BATCH) /* the same, of texts */
#define FULL_READ_SHARE 20                /* full reads may take 1/20 of the time */

METRIC_GAUGE(outbox_age, "reclaim_events_outbox_age_seconds", "Age of the oldest unpublished event.");
METRIC_GAUGE(unconfirmed, "reclaim_events_unconfirmed", "Published events that are not confirmed.");
METRIC_GAUGE(connected, "reclaim_events_broker_connected", "1 while the relay is connected to RabbitMQ.");
METRIC_COUNTER(published, "reclaim_events_published_total", "Events confirmed by RabbitMQ.");
METRIC_COUNTER(returned, "reclaim_events_returned_total", "Events confirmed, but not routed to any queue.");
METRIC_COUNTER(refused, "reclaim_events_refused_total", "Events refused by RabbitMQ; they are published again.");
METRIC_COUNTER(too_large, "reclaim_events_too_large_total",
               "Events not published, because they are larger than 16 MB or than RabbitMQ accepts.");
METRIC_COUNTER(redelivered, "reclaim_events_redelivered_total",
               "Events published again because their confirm was lost.");
METRIC_HISTOGRAM(delay, "reclaim_events_delay_seconds", "Time from the change to the confirm of its event.",
                 metric_seconds);

/* The published batch, kept until it is confirmed while the next one is read. */
struct event_batch {
    int count;
    int64_t read_ns;
    int64_t positions[BATCH], epochs[BATCH], age_ms[BATCH];
    char customers[BATCH][37], ids[BATCH][37];
    enum publish_result results[BATCH];
};

struct relay {
    struct relay_config config;
    struct broker *broker;
    struct pg *pg;
    struct listener *listener;
    pthread_t thread;
    int stop_fd, wake_fd, done_fd;
    bool outage_logged;
    int failures; /* in a row */
    int alone;    /* so many events are published one by one, to find the one that the broker refuses */

    struct outbox_floor floor;
    int64_t full_read_due_ns;

    struct buf event;            /* buffer for the body */
    struct buf marks;            /* "{1,2,3": done with; written to the outbox by the next read */
    struct buf marked_epochs;    /* theirs: after a restore the same event is published again, in another epoch */
    struct buf returns, reasons; /* those of them that no consumer has, and why */
    struct buf unconfirmed;      /* "{4,5,6": published, and skipped by the next read */
    int64_t returns_logged_ns;
    struct event_batch batch;
};

/* --- waiting --- */

static void wake(int fd)
{
    uint64_t one = 1;
    (void)!write(fd, &one, sizeof one);
}

static void on_notification(void *context, const char *channel UNUSED, const char *payload UNUSED)
{
    struct relay *r = context;
    wake(r->wake_fd);
}

static void on_listener_state(void *context, bool is_alive UNUSED)
{
    on_notification(context, NULL, NULL);
}

static void wait_for_events(struct relay *r, int wait_ms)
{
    struct pollfd on[2] = {{r->stop_fd, POLLIN, 0}, {r->wake_fd, POLLIN, 0}};
    poll(on, 2, wait_ms);
}

/* Before a read, so that a later notification wakes the thread again. */
static void clear_wake(struct relay *r)
{
    uint64_t count;
    (void)!read(r->wake_fd, &count, sizeof count);
}

static void log_outage_once(struct relay *r, const char *what, const char *reason)
{
    if (!r->outage_logged)
        log_warn(what, F_STR("reason", reason));
    r->outage_logged = true;
}

/* --- the outbox --- */

/* The next read begins at the start of the outbox. */
static void start_over(struct relay *r)
{
    r->floor = (struct outbox_floor){0};
}

/* The horizon was taken before the events were read. */
static void move_floor(struct relay *r, const struct pg_call *horizon, const struct pg_call *rows, bool more)
{
    struct outbox_reading reading = {
        .oldest_xid = pg_get_i64(horizon, 0, 0),
        .next_xid = pg_get_i64(horizon, 0, 1),
        .last = rows->rows ? pg_get_i64(rows, rows->rows - 1, EVENT_POSITION) : 0,
        .more = more,
    };
    floor_move(&r->floor, &reading);
}

/* A full read also finds events below the floor, and is cheap unless many dead index entries have to be skipped: the
 * interval depends on how long the last one took. */
static void schedule_full_read(struct relay *r, bool was_full, int64_t began_ns, bool more)
{
    int64_t now_ns = clock_ns();
    if (was_full)
        r->full_read_due_ns = now_ns + FULL_READ_SHARE * (now_ns - began_ns);
    if (!more && now_ns >= r->full_read_due_ns)
        r->floor.at = 0;
}

/* One trip: records confirmed events and reads the next batch. */
static enum err record_and_read(struct relay *r, struct pg_call *ret_rows)
{
    struct pg_call calls[4];
    size_t n = 0;
    bool full = r->floor.at == 0;
    int64_t limit = r->alone > 0 ? 1 : BATCH;
    int64_t began_ns = clock_ns();
    calls[n++] = (struct pg_call){.ask = &outbox_horizon};
    size_t marks_len = r->marks.len, returns_len = r->returns.len, reasons_len = r->reasons.len;
    size_t epochs_len = r->marked_epochs.len;
    if (marks_len)
        calls[n++] = (struct pg_call){.ask = &outbox_mark,
                                      .args = {pg_text(array_end(&r->marks)), pg_text(array_end(&r->marked_epochs))}};
    if (returns_len)
        calls[n++] = (struct pg_call){.ask = &outbox_note_returns,
                                      .args = {pg_text(array_end(&r->returns)), pg_text(array_end(&r->reasons))}};
    size_t unconfirmed_len = r->unconfirmed.len;
    const char *skipped = array_end(&r->unconfirmed);
    calls[n++] = (struct pg_call){.ask = &outbox_fetch, .args = {pg_i64(r->floor.at), pg_i64(limit), pg_text(skipped)}};
    enum err e = pg_trip(r->pg, calls, n, began_ns + TRIP_NS);
    r->unconfirmed.len = unconfirmed_len;
    if (e) { /* recorded by the next read */
        r->marks.len = marks_len;
        r->marked_epochs.len = epochs_len;
        r->returns.len = returns_len;
        r->reasons.len = reasons_len;
        return e;
    }
    buf_clear(&r->marks);
    buf_clear(&r->marked_epochs);
    buf_clear(&r->returns);
    buf_clear(&r->reasons);
    *ret_rows = calls[n - 1];
    bool more = outbox_has_more(ret_rows, limit);
    move_floor(r, &calls[0], ret_rows, more);
    schedule_full_read(r, full, began_ns, more);
    gauge_set(&outbox_age, ret_rows->rows ? (double)pg_get_i64(ret_rows, 0, EVENT_AGE_MS) / 1000 : 0);
    return OK;
}

/* Keeps the metric up to date while the broker is not reachable. */
static void measure_age(struct relay *r)
{
    struct pg_call oldest = {.ask = &outbox_oldest, .args = {pg_i64(0)}};
    if (pg_ask(r->pg, &oldest, clock_ns() + TRIP_NS) == OK)
        gauge_set(&outbox_age, oldest.rows ? (double)pg_get_i64(&oldest, 0, 0) / 1000 : 0);
}

/* --- events that no consumer has --- */

static void mark(struct relay *r, int64_t position, int64_t epoch)
{
    array_add_i64(&r->marks, position);
    array_add_i64(&r->marked_epochs, epoch);
}

/* Counts as published, so that it does not hold up others; `reclaim events redrive` publishes it again. */
static void set_aside(struct relay *r, int i, const char *reason)
{
    int64_t position = r->batch.positions[i];
    mark(r, position, r->batch.epochs[i]);
    array_add_i64(&r->returns, position);
    array_add_text(&r->reasons, str_of(reason));
}

static void set_aside_too_large(struct relay *r, int i, const char *reason)
{
    set_aside(r, i, reason);
    counter_add(&too_large, 1);
    log_warn("an event is too large and was not published: see reclaim events dead", F_STR("event_id", r->batch.ids[i]),
             F_STR("reason", reason));
}

/* --- the broker --- */

static enum err publish_row(struct relay *r, const struct pg_call *rows, int i, struct why *why)
{
    buf_clear(&r->event);
    outbox_write_event(rows, i, &r->event);
    struct str body = buf_str(&r->event);
    if (!body.at)
        return why_set(why, ERR_MEMORY, "no memory for an event");
    const char *type = pg_get(rows, i, EVENT_TYPE).at;
    struct broker_message m = {.exchange = EVENTS_EXCHANGE,
                               .key = type,
                               .content_type = "application/cloudevents+json; charset=utf-8",
                               .type = type,
                               .id = pg_get(rows, i, EVENT_ID).at,
                               .body = body};
    return broker_publish(r->broker, &m, why);
}

/* The broker does not say which event of a batch it refuses: they are published again one by one, and an event refused alone
 * is set aside. */
static void find_refused(struct relay *r, const struct why *why)
{
    struct event_batch *f = &r->batch;
    if (f->count != 1) {
        r->alone = f->count;
        return;
    }
    set_aside_too_large(r, 0, why->text);
    f->count = 0;
    r->alone -= r->alone > 0;
    r->failures = 0;
}

static enum err abort_batch(struct relay *r, enum err e, const struct why *why)
{
    if (broker_refused_message(r->broker))
        find_refused(r, why);
    counter_add(&redelivered, (uint64_t)r->batch.count);
    gauge_set(&unconfirmed, 0);
    r->batch.count = 0;
    buf_clear(&r->unconfirmed);
    broker_disconnect(r->broker);
    log_outage_once(r, "broker lost", why->text);
    return e;
}

static enum err publish_batch(struct relay *r, const struct pg_call *rows)
{
    struct event_batch *f = &r->batch;
    struct why why = {""};
    f->count = 0;
    f->read_ns = clock_ns();
    for (int row = 0; row < rows->rows; row++) {
        int i = f->count;
        f->positions[i] = pg_get_i64(rows, row, EVENT_POSITION);
        f->epochs[i] = pg_get_i64(rows, row, EVENT_EPOCH);
        f->age_ms[i] = pg_get_i64(rows, row, EVENT_AGE_MS);
        enum err e = str_copy(pg_get(rows, row, EVENT_CUSTOMER), f->customers[i], sizeof f->customers[i]);
        if (!e)
            e = str_copy(pg_get(rows, row, EVENT_ID), f->ids[i], sizeof f->ids[i]);
        if (!e && pg_is_null(rows, row, EVENT_DATA)) {
            set_aside_too_large(r, i, EVENT_TOO_LARGE);
            continue;
        }
        if (e || (e = publish_row(r, rows, row, &why)))
            return abort_batch(r, e, &why);
        array_add_i64(&r->unconfirmed, f->positions[i]);
        f->count++;
    }
    gauge_set(&unconfirmed, f->count);
    return OK;
}

/* Later events of the same customer are published again after the refused one, to keep their order. */
static bool follows_refused(const struct event_batch *f, int i, int first_refused)
{
    for (int k = first_refused; k < i; k++)
        if (f->results[k] == PUBLISH_REFUSED && strcmp(f->customers[k], f->customers[i]) == 0)
            return true;
    return false;
}

static void log_returns(struct relay *r, int count)
{
    counter_add(&returned, (uint64_t)count);
    if (r->returns_logged_ns && clock_ns() < r->returns_logged_ns + 60 * NS_PER_S)
        return;
    r->returns_logged_ns = clock_ns();
    log_warn("no queue is bound for events: bind one to reclaim.events, then run reclaim events redrive",
             F_INT("events", count));
}

/* Collects confirmed events; false if some must be published again. */
static bool collect_confirmed(struct relay *r)
{
    const struct event_batch *f = &r->batch;
    int first_refused = f->count, accepted = 0, unroutable = 0, refusals = 0;
    double waited = (double)(clock_ns() - f->read_ns) / 1e9;
    for (int i = 0; i < f->count; i++) {
        if (f->results[i] == PUBLISH_REFUSED) {
            first_refused = i < first_refused ? i : first_refused;
            refusals++;
            continue;
        }
        if (follows_refused(f, i, first_refused))
            continue;
        if (f->results[i] == PUBLISH_RETURNED) {
            set_aside(r, i, "no queue was bound for it");
            unroutable++;
        } else {
            mark(r, f->positions[i], f->epochs[i]);
        }
        accepted++;
        histogram_observe(&delay, (double)f->age_ms[i] / 1000 + waited);
    }
    counter_add(&published, (uint64_t)accepted);
    counter_add(&refused, (uint64_t)refusals);
    if (unroutable)
        log_returns(r, unroutable);
    return accepted == f->count;
}

static enum err confirm_batch(struct relay *r)
{
    struct event_batch *f = &r->batch;
    struct why why = {""};
    enum err e = broker_await_confirms(r->broker, f->results, (size_t)f->count, CONFIRM_NS, &why);
    if (e)
        return abort_batch(r, e, &why);
    bool all = collect_confirmed(r);
    gauge_set(&unconfirmed, 0);
    r->alone -= r->alone > 0;
    f->count = 0;
    buf_clear(&r->unconfirmed);
    if (all)
        return OK;
    log_outage_once(r, "the broker refuses events", "negative confirm");
    return ERR_FULL;
}

/* --- the thread --- */

static enum err connect_broker(struct relay *r)
{
    struct why why = {""};
    enum err e = broker_is_up(r->broker) ? broker_check(r->broker) : ERR_CLOSED;
    if (e == OK)
        return OK;
    gauge_set(&connected, 0);
    if ((e = broker_connect(r->broker, &why)) || (e = broker_declare(r->broker, &why))) {
        log_outage_once(r, "broker unreachable: events wait in the outbox", why.text);
        return e;
    }
    gauge_set(&connected, 1);
    r->outage_logged = false;
    log_info("relay connected");
    return OK;
}

/* Publishes until the outbox is empty. */
static enum err drain(struct relay *r)
{
    enum err e = pg_is_up(r->pg) ? OK : pg_connect(r->pg, clock_ns() + CONNECT_NS, NULL);
    if (e)
        return e;
    if ((e = connect_broker(r))) {
        measure_age(r);
        return e;
    }
    struct pg_call rows;
    clear_wake(r);
    e = record_and_read(r, &rows);
    while (!e && rows.rows && r->config.leads(r->config.context) && !stop_is_raised(r->stop_fd)) {
        if ((e = publish_batch(r, &rows)))
            return e;
        enum err read = record_and_read(r, &rows); /* while the broker handles the batch */
        if ((e = confirm_batch(r)) || (e = read))
            return e;
        if (rows.rows == 0) {
            clear_wake(r);
            e = record_and_read(r, &rows);
        }
    }
    return !e && r->marks.len ? record_and_read(r, &rows) : e; /* records the last confirms */
}

static void go_idle(struct relay *r)
{
    broker_disconnect(r->broker);
    gauge_set(&connected, 0);
    gauge_set(&outbox_age, 0);
    start_over(r);
    r->failures = 0;
    r->alone = 0;
    r->outage_logged = false;
}

static void *run(void *context)
{
    struct relay *r = context;
    while (!stop_is_raised(r->stop_fd)) {
        if (!r->config.leads(r->config.context)) {
            go_idle(r);
            (void)stop_wait(r->stop_fd, READ_EVERY_MS / 5);
            continue;
        }
        if (drain(r) == OK) {
            r->failures = 0;
            wait_for_events(r, READ_EVERY_MS);
        } else {
            start_over(r);
            (void)stop_wait(r->stop_fd, backoff_jittered_ms(retrying, ++r->failures));
        }
    }
    go_idle(r);
    stop_raise(r->done_fd);
    return NULL;
}

static void free_relay(struct relay *r)
{
    broker_free(r->broker);
    pg_free(r->pg);
    buf_free(&r->event);
    buf_free(&r->marks);
    buf_free(&r->marked_epochs);
    buf_free(&r->returns);
    buf_free(&r->reasons);
    buf_free(&r->unconfirmed);
    stop_free(r->stop_fd);
    stop_free(r->done_fd);
    if (r->wake_fd >= 0)
        close(r->wake_fd);
    free(r);
}

static enum err open_relay(struct relay *r, const struct relay_config *config, struct why *why)
{
    static const char *const channels[] = {"reclaim_events", NULL};
    struct listener_config listener = {config->direct_url, channels, r, on_notification, on_listener_state};
    r->stop_fd = stop_new();
    r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r->done_fd = stop_new();
    r->event = buf_new(EVENT_BYTES_MAX);
    r->marks = buf_new(LIST_MAX);
    r->marked_epochs = buf_new(LIST_MAX);
    r->returns = buf_new(LIST_MAX);
    r->reasons = buf_new(REASONS_MAX);
    r->unconfirmed = buf_new(LIST_MAX);
    r->pg = pg_new(config->direct_url, PG_PREPARE_AUTO);
    if (r->stop_fd < 0 || r->wake_fd < 0 || r->done_fd < 0 || !r->pg)
        return why_set(why, ERR_SYSTEM, "no memory or descriptor for the relay");
    pg_give_up_when(r->pg, r->stop_fd);
    r->broker = broker_new(config->amqp_url, why);
    if (!r->broker || !(r->listener = listener_start(&listener, why)))
        return ERR_SYSTEM;
    if (pthread_create(&r->thread, NULL, run, r) == 0)
        return OK;
    listener_stop(r->listener);
    return why_set(why, ERR_SYSTEM, "no thread for the relay");
}

struct relay *relay_start(const struct relay_config *config, struct why *why)
{
    struct relay *r = calloc(1, sizeof *r);
    if (!r) {
        (void)why_set(why, ERR_MEMORY, "no memory for the relay");
        return NULL;
    }
    r->config = *config;
    r->config.amqp_url = r->config.direct_url = NULL; /* copied by broker_new() and pg_new() */
    if (open_relay(r, config, why) == OK)
        return r;
    free_relay(r);
    return NULL;
}

void relay_stop(struct relay *r)
{
    if (!r)
        return;
    stop_raise(r->stop_fd);
    /* Waits for the confirms of the last batch, which would be published twice otherwise, unless the broker hangs. */
    if (!stop_wait(r->done_fd, STOP_MS))
        broker_interrupt(r->broker);
    pthread_join(r->thread, NULL);
    listener_stop(r->listener);
    free_relay(r);
}
