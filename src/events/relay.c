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
#define LOOK_EVERY_MS 1000
#define TRIP_NS (30 * NS_PER_S)
#define CONNECT_NS (5 * NS_PER_S)
#define CONFIRM_NS (30 * NS_PER_S)
#define STOP_MS 2000
static const struct backoff retrying = {100 * NS_PER_MS, 5 * NS_PER_S};
#define EVENT_CEILING ((size_t)4 * 1024 * 1024)
#define LIST_CEILING ((size_t)64 * BATCH) /* two batches, where a look failed between them */
#define FULL_LOOK_SHARE 20                /* looking from the start may take a twentieth of the time */

METRIC_GAUGE(outbox_age, "reclaim_events_outbox_age_seconds", "Age of the oldest event that is not published yet.");
METRIC_GAUGE(unconfirmed, "reclaim_events_unconfirmed", "Events published whose confirm is awaited.");
METRIC_GAUGE(connected, "reclaim_events_broker_connected", "1 while the relay has its connection to RabbitMQ.");
METRIC_COUNTER(published, "reclaim_events_published_total", "Events that RabbitMQ confirmed.");
METRIC_COUNTER(returned, "reclaim_events_returned_total", "Events confirmed though no queue was bound for them.");
METRIC_COUNTER(refused, "reclaim_events_refused_total", "Events that RabbitMQ could not keep; they are sent again.");
METRIC_COUNTER(redelivered, "reclaim_events_redelivered_total",
               "Events sent again because it is not known whether they arrived.");
METRIC_HISTOGRAM(delay, "reclaim_events_delay_seconds", "From the change to the confirm of its event.", metric_seconds);

/* A batch on its way: what is needed of its rows until it is confirmed, while the next ones are read. */
struct flight {
    int count;
    int64_t read_ns;
    int64_t positions[BATCH], age_ms[BATCH];
    char customers[BATCH][37];
    enum fate fates[BATCH];
};

struct relay {
    struct relay_config config;
    struct broker *broker;
    struct pg *pg;
    struct listener *listener;
    pthread_t thread;
    int stop_fd, wake_fd, done_fd;
    bool outage_told;
    int failures; /* in a row */

    struct outbox_floor floor;
    int64_t full_look_due_ns;

    struct buf event;          /* the one being written */
    struct buf marks, returns; /* "{1,2,3": confirmed, and noted with the next look */
    struct buf unconfirmed;    /* "{4,5,6": on their way, and not read again */
    int64_t returns_told_ns;
    struct flight flight;
};

/* --- waiting --- */

static void ring(int fd)
{
    uint64_t one = 1;
    (void)!write(fd, &one, sizeof one);
}

static void heard(void *context, const char *channel UNUSED, const char *payload UNUSED)
{
    struct relay *r = context;
    ring(r->wake_fd);
}

static void alive(void *context, bool is_alive UNUSED)
{
    heard(context, NULL, NULL);
}

static void await_news(struct relay *r, int wait_ms)
{
    struct pollfd on[2] = {{r->stop_fd, POLLIN, 0}, {r->wake_fd, POLLIN, 0}};
    poll(on, 2, wait_ms);
}

/* Before looking: what comes from here on wakes us again. */
static void forget_news(struct relay *r)
{
    uint64_t count;
    (void)!read(r->wake_fd, &count, sizeof count);
}

static void tell_outage(struct relay *r, const char *what, const char *reason)
{
    if (!r->outage_told)
        log_warn(what, F_STR("reason", reason));
    r->outage_told = true;
}

/* --- the outbox --- */

/* Forgets how far it was: the next look begins at the start. */
static void start_over(struct relay *r)
{
    r->floor = (struct outbox_floor){0};
}

/* The horizon was taken before the events were read. */
static void move_floor(struct relay *r, const struct pg_call *horizon, const struct pg_call *rows)
{
    struct outbox_reading reading = {
        .oldest_xid = pg_get_i64(horizon, 0, 0),
        .next_xid = pg_get_i64(horizon, 0, 1),
        .last = rows->rows ? pg_get_i64(rows, rows->rows - 1, EVENT_POSITION) : 0,
        .more = rows->rows == BATCH,
    };
    floor_move(&r->floor, &reading);
}

/* Looking from the start also finds what slipped past the floor, and is cheap unless dead index entries pile up: how
 * often depends on what it costs. */
static void plan_full_look(struct relay *r, bool was_full, int64_t began_ns, int rows)
{
    int64_t now_ns = clock_ns();
    if (was_full)
        r->full_look_due_ns = now_ns + FULL_LOOK_SHARE * (now_ns - began_ns);
    if (rows < BATCH && now_ns >= r->full_look_due_ns)
        r->floor.at = 0;
}

/* One trip: notes what was confirmed, and reads the next batch. */
static enum err look(struct relay *r, struct pg_call *ret_rows)
{
    struct pg_call calls[4];
    size_t n = 0;
    bool full = r->floor.at == 0;
    int64_t began_ns = clock_ns();
    calls[n++] = (struct pg_call){.ask = &outbox_horizon};
    size_t marks_len = r->marks.len, returns_len = r->returns.len;
    if (marks_len)
        calls[n++] = (struct pg_call){.ask = &outbox_mark, .args = {pg_text(array_end(&r->marks))}};
    if (returns_len)
        calls[n++] = (struct pg_call){.ask = &outbox_note_returns, .args = {pg_text(array_end(&r->returns))}};
    size_t unconfirmed_len = r->unconfirmed.len;
    const char *skipped = array_end(&r->unconfirmed);
    calls[n++] = (struct pg_call){.ask = &outbox_fetch, .args = {pg_i64(r->floor.at), pg_i64(BATCH), pg_text(skipped)}};
    enum err e = pg_trip(r->pg, calls, n, began_ns + TRIP_NS);
    r->unconfirmed.len = unconfirmed_len;
    if (e) { /* kept for the next try */
        r->marks.len = marks_len;
        r->returns.len = returns_len;
        return e;
    }
    buf_clear(&r->marks);
    buf_clear(&r->returns);
    *ret_rows = calls[n - 1];
    move_floor(r, &calls[0], ret_rows);
    plan_full_look(r, full, began_ns, ret_rows->rows);
    gauge_set(&outbox_age, ret_rows->rows ? (double)pg_get_i64(ret_rows, 0, EVENT_AGE_MS) / 1000 : 0);
    return OK;
}

/* While the broker is away the age still shows how long events have been waiting. */
static void tell_age(struct relay *r)
{
    struct pg_call oldest = {.ask = &outbox_oldest, .args = {pg_i64(0)}};
    if (pg_ask(r->pg, &oldest, clock_ns() + TRIP_NS) == OK)
        gauge_set(&outbox_age, oldest.rows ? (double)pg_get_i64(&oldest, 0, 0) / 1000 : 0);
}

/* --- the broker --- */

static enum err publish_row(struct relay *r, const struct pg_call *rows, int i, struct why *why)
{
    buf_clear(&r->event);
    outbox_write_event(rows, i, &r->event);
    struct str body = buf_str(&r->event);
    if (!body.at)
        return why_set(why, ERR_MEMORY, "an event is too large");
    const char *type = pg_get(rows, i, EVENT_TYPE).at;
    struct broker_message m = {.exchange = EVENTS_EXCHANGE,
                               .key = type,
                               .content_type = "application/cloudevents+json; charset=utf-8",
                               .type = type,
                               .id = pg_get(rows, i, EVENT_ID).at,
                               .body = body};
    return broker_publish(r->broker, &m, why);
}

static enum err abort_batch(struct relay *r, enum err e, const struct why *why)
{
    counter_add(&redelivered, (uint64_t)r->flight.count);
    gauge_set(&unconfirmed, 0);
    r->flight.count = 0;
    buf_clear(&r->unconfirmed);
    broker_disconnect(r->broker);
    tell_outage(r, "broker lost", why->text);
    return e;
}

static enum err publish_batch(struct relay *r, const struct pg_call *rows)
{
    struct flight *f = &r->flight;
    struct why why = {""};
    f->count = 0;
    f->read_ns = clock_ns();
    for (int i = 0; i < rows->rows; i++) {
        f->positions[i] = pg_get_i64(rows, i, EVENT_POSITION);
        f->age_ms[i] = pg_get_i64(rows, i, EVENT_AGE_MS);
        enum err e = str_copy(pg_get(rows, i, EVENT_CUSTOMER), f->customers[i], sizeof f->customers[i]);
        if (e || (e = publish_row(r, rows, i, &why)))
            return abort_batch(r, e, &why);
        array_add_i64(&r->unconfirmed, f->positions[i]);
        f->count++;
    }
    gauge_set(&unconfirmed, f->count);
    return OK;
}

/* After an event that was refused its customer's later ones are sent again too, behind it. */
static bool waits_for_another(const struct flight *f, int i, int first_refused)
{
    for (int k = first_refused; k < i; k++)
        if (f->fates[k] == FATE_REFUSED && strcmp(f->customers[k], f->customers[i]) == 0)
            return true;
    return false;
}

static void tell_returns(struct relay *r, int count)
{
    counter_add(&returned, (uint64_t)count);
    if (r->returns_told_ns && clock_ns() < r->returns_told_ns + 60 * NS_PER_S)
        return;
    r->returns_told_ns = clock_ns();
    log_warn("no queue is bound for events: bind one to reclaim.events, then run reclaim events redrive",
             F_INT("events", count));
}

/* Notes what has arrived; false when some of it must be sent again. */
static bool judge(struct relay *r)
{
    const struct flight *f = &r->flight;
    int first_refused = f->count, taken = 0, unroutable = 0, refusals = 0;
    double waited = (double)(clock_ns() - f->read_ns) / 1e9;
    for (int i = 0; i < f->count; i++) {
        if (f->fates[i] == FATE_REFUSED) {
            first_refused = i < first_refused ? i : first_refused;
            refusals++;
            continue;
        }
        if (waits_for_another(f, i, first_refused))
            continue;
        array_add_i64(&r->marks, f->positions[i]);
        if (f->fates[i] == FATE_RETURNED) {
            array_add_i64(&r->returns, f->positions[i]);
            unroutable++;
        }
        taken++;
        histogram_observe(&delay, (double)f->age_ms[i] / 1000 + waited);
    }
    counter_add(&published, (uint64_t)taken);
    counter_add(&refused, (uint64_t)refusals);
    if (unroutable)
        tell_returns(r, unroutable);
    return taken == f->count;
}

static enum err confirm_batch(struct relay *r)
{
    struct flight *f = &r->flight;
    struct why why = {""};
    enum err e = broker_settle(r->broker, f->fates, (size_t)f->count, CONFIRM_NS, &why);
    if (e)
        return abort_batch(r, e, &why);
    bool all = judge(r);
    gauge_set(&unconfirmed, 0);
    f->count = 0;
    buf_clear(&r->unconfirmed);
    if (all)
        return OK;
    tell_outage(r, "the broker refuses events", "negative confirm");
    return ERR_FULL;
}

/* --- the thread --- */

static enum err connect_broker(struct relay *r)
{
    struct why why = {""};
    enum err e = broker_is_up(r->broker) ? broker_tend(r->broker) : ERR_CLOSED;
    if (e == OK)
        return OK;
    gauge_set(&connected, 0);
    if ((e = broker_connect(r->broker, &why)) || (e = broker_declare(r->broker, &why))) {
        tell_outage(r, "broker unreachable: events wait in the outbox", why.text);
        return e;
    }
    gauge_set(&connected, 1);
    r->outage_told = false;
    log_info("relay connected");
    return OK;
}

/* Carries all there is. */
static enum err work(struct relay *r)
{
    enum err e = pg_is_up(r->pg) ? OK : pg_connect(r->pg, clock_ns() + CONNECT_NS, NULL);
    if (e)
        return e;
    if ((e = connect_broker(r))) {
        tell_age(r);
        return e;
    }
    struct pg_call rows;
    forget_news(r);
    e = look(r, &rows);
    while (!e && rows.rows && r->config.leads(r->config.context) && !stop_is_raised(r->stop_fd)) {
        if ((e = publish_batch(r, &rows)))
            return e;
        enum err read = look(r, &rows); /* while the broker is busy with the batch */
        if ((e = confirm_batch(r)) || (e = read))
            return e;
        if (rows.rows == 0) {
            forget_news(r);
            e = look(r, &rows);
        }
    }
    return !e && r->marks.len ? look(r, &rows) : e; /* no confirm stays unnoted */
}

static void rest(struct relay *r)
{
    broker_disconnect(r->broker);
    gauge_set(&connected, 0);
    gauge_set(&outbox_age, 0);
    start_over(r);
    r->failures = 0;
    r->outage_told = false;
}

static void *run(void *context)
{
    struct relay *r = context;
    while (!stop_is_raised(r->stop_fd)) {
        if (!r->config.leads(r->config.context)) {
            rest(r);
            (void)stop_wait(r->stop_fd, LOOK_EVERY_MS / 5);
            continue;
        }
        if (work(r) == OK) {
            r->failures = 0;
            await_news(r, LOOK_EVERY_MS);
        } else {
            start_over(r);
            (void)stop_wait(r->stop_fd, backoff_jittered_ms(retrying, ++r->failures));
        }
    }
    rest(r);
    stop_raise(r->done_fd);
    return NULL;
}

static void free_relay(struct relay *r)
{
    broker_free(r->broker);
    pg_free(r->pg);
    buf_free(&r->event);
    buf_free(&r->marks);
    buf_free(&r->returns);
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
    struct listener_config listener = {config->direct_url, channels, r, heard, alive};
    r->stop_fd = stop_new();
    r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r->done_fd = stop_new();
    r->event = buf_new(EVENT_CEILING);
    r->marks = buf_new(LIST_CEILING);
    r->returns = buf_new(LIST_CEILING);
    r->unconfirmed = buf_new(LIST_CEILING);
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
    r->config.amqp_url = r->config.direct_url = NULL; /* copied where they are needed */
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
    /* What is under way may be confirmed and noted, or it would be sent twice; a broker that hangs is not waited for. */
    if (!stop_wait(r->done_fd, STOP_MS))
        broker_interrupt(r->broker);
    pthread_join(r->thread, NULL);
    listener_stop(r->listener);
    free_relay(r);
}
