#include "events/receipts.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/stop.h"
#include "events/broker.h"

#define PREFETCH 100
#define LOOK_NS NS_PER_S
#define APPLY_NS (10 * NS_PER_S)
#define CONNECT_NS (5 * NS_PER_S)
#define CONFIRM_NS (30 * NS_PER_S)
static const struct backoff reconnecting = {100 * NS_PER_MS, 5 * NS_PER_S};

METRIC_COUNTER(taken, "reclaim_receipts_total", "Receipts taken from the queue.", "outcome");
METRIC_COUNTER(redelivered, "reclaim_receipts_redelivered_total", "Receipts that had been delivered before.");

struct receipts {
    struct receipts_config config;
    struct broker *in,
        *out; /* confirms cannot be read between deliveries: bad ones leave by a connection of their own */
    struct pg *pg;
    pthread_t thread;
    int stop_fd;
    bool outage_told, database_told;
};

static enum err apply_once(struct receipts *r, const struct receipt *receipt)
{
    enum err e = pg_is_up(r->pg) ? OK : pg_connect(r->pg, clock_ns() + CONNECT_NS, NULL);
    if (e)
        return ERR_CLOSED;
    return r->config.apply(r->config.context, r->pg, receipt, clock_ns() + APPLY_NS);
}

static bool may_pass(enum err e)
{
    return e == ERR_CLOSED || e == ERR_TIMEOUT || e == ERR_CONFLICT || e == ERR_MEMORY || e == ERR_SYSTEM;
}

/* Until it is decided: while the database is away the message is held, and the broker told that we live. ERR_CLOSED when
 * it is not to be decided by us. */
static enum err apply(struct receipts *r, const struct receipt *receipt)
{
    for (int failures = 1;; failures++) {
        enum err e = apply_once(r, receipt);
        if (!may_pass(e)) {
            r->database_told = false;
            return e;
        }
        if (!r->database_told)
            log_warn("receipts wait for the database", F_STR("error", err_name(e)));
        r->database_told = true;
        if (stop_wait(r->stop_fd, (int)(backoff_ns(reconnecting, failures) / NS_PER_MS)) || broker_beat(r->in))
            return ERR_CLOSED;
    }
}

/* Kept as it came, with the reason beside it. Acknowledged only when the broker has the copy. */
static enum err bury(struct receipts *r, const struct broker_delivery *d, const char *reason, struct why *why)
{
    char id[37];
    random_uuid(id);
    struct broker_message m = {.exchange = "",
                               .key = RECEIPTS_DEAD_QUEUE,
                               .content_type = d->content_type[0] ? d->content_type : NULL,
                               .id = id,
                               .reason = reason,
                               .body = d->body};
    enum fate fate;
    enum err e = broker_is_up(r->out) ? broker_tend(r->out) : ERR_CLOSED;
    if (e && (e = broker_connect(r->out, why)))
        return e;
    if ((e = broker_publish(r->out, &m, why)) || (e = broker_settle(r->out, &fate, 1, CONFIRM_NS, why)))
        return e;
    if (fate != FATE_TAKEN)
        return why_set(why, ERR_CLOSED, "the queue " RECEIPTS_DEAD_QUEUE " is gone or takes nothing");
    log_warn("receipt refused", F_STR("reason", reason), F_STR("id", id));
    return OK;
}

static const char *outcome_of(enum err e)
{
    return e == OK ? "applied" : e == ERR_MISSING ? "unknown" : e == ERR_INPUT ? "malformed" : "refused";
}

static enum err decide(struct receipts *r, const struct broker_delivery *d, struct why *reason)
{
    struct receipt receipt;
    enum err e = receipt_parse(d->body, &receipt, reason);
    if (e)
        return e;
    e = apply(r, &receipt);
    if (e == ERR_MISSING)
        (void)why_set(reason, e, "no cascade of this customer waits for this participant");
    else if (e && e != ERR_CLOSED)
        (void)why_set(reason, e, "the database refused it (%s)", err_name(e));
    return e;
}

static enum err take(struct receipts *r, const struct broker_delivery *d, struct why *why)
{
    struct why reason = {""};
    if (d->redelivered)
        counter_add(&redelivered, 1);
    enum err e = decide(r, d, &reason);
    if (e == ERR_CLOSED)
        return why_set(why, e, "left for later");
    counter_add(&taken, 1, outcome_of(e));
    reason.text[200] = '\0'; /* headers have little room */
    if (e && (e = bury(r, d, reason.text, why)))
        return e;
    return broker_ack(r->in, d->tag, why);
}

static enum err consume(struct receipts *r, struct why *why)
{
    enum err e = broker_connect(r->in, why);
    if (e || (e = broker_declare(r->in, why)) || (e = broker_consume(r->in, RECEIPTS_QUEUE, PREFETCH, why)))
        return e;
    r->outage_told = false;
    log_info("receipts connected");
    while (!stop_is_raised(r->stop_fd)) {
        struct broker_delivery d = {0};
        e = broker_next(r->in, LOOK_NS, &d, why);
        if (e == ERR_TIMEOUT)
            continue;
        if (!e)
            e = take(r, &d, why);
        broker_release(&d);
        if (e)
            return e;
    }
    return OK;
}

static void *run(void *context)
{
    struct receipts *r = context;
    int failures = 0;
    while (!stop_wait(r->stop_fd, backoff_jittered_ms(reconnecting, failures))) {
        struct why why = {""};
        int64_t began_ns = clock_ns();
        enum err e = consume(r, &why);
        broker_disconnect(r->in);
        if (e && !r->outage_told && !stop_is_raised(r->stop_fd))
            log_warn("receipts wait for the broker", F_STR("reason", why.text));
        r->outage_told = true;
        failures = clock_ns() - began_ns > 10 * NS_PER_S ? 1 : failures + 1;
    }
    broker_disconnect(r->out);
    return NULL;
}

static void free_receipts(struct receipts *r)
{
    broker_free(r->in);
    broker_free(r->out);
    pg_free(r->pg);
    stop_free(r->stop_fd);
    free(r);
}

struct receipts *receipts_start(const struct receipts_config *config, struct why *why)
{
    struct receipts *r = calloc(1, sizeof *r);
    if (!r) {
        (void)why_set(why, ERR_MEMORY, "no memory for receipts");
        return NULL;
    }
    r->config = *config;
    r->config.amqp_url = r->config.database_url = NULL; /* copied where they are needed */
    r->stop_fd = stop_new();
    r->pg = pg_new(config->database_url, config->prepare);
    if (r->pg)
        pg_give_up_when(r->pg, r->stop_fd);
    if (r->stop_fd < 0 || !r->pg || !(r->in = broker_new(config->amqp_url, why)) ||
        !(r->out = broker_new(config->amqp_url, why)) || pthread_create(&r->thread, NULL, run, r) != 0) {
        if (why && !why->text[0])
            (void)why_set(why, ERR_SYSTEM, "no memory, descriptor or thread for receipts");
        free_receipts(r);
        return NULL;
    }
    return r;
}

void receipts_stop(struct receipts *r)
{
    if (!r)
        return;
    stop_raise(r->stop_fd);
    broker_interrupt(r->out);
    broker_interrupt(r->in);
    pthread_join(r->thread, NULL);
    free_receipts(r);
}
