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
#define NEXT_NS NS_PER_S
#define APPLY_NS (10 * NS_PER_S)
#define CONNECT_NS (5 * NS_PER_S)
#define CONFIRM_NS (30 * NS_PER_S)
static const struct backoff reconnecting = {100 * NS_PER_MS, 5 * NS_PER_S};

METRIC_COUNTER(handled, "reclaim_receipts_total", "Receipts consumed from the queue.", "outcome");
METRIC_COUNTER(redelivered, "reclaim_receipts_redelivered_total", "Receipts that the broker delivered again.");

struct receipts {
    struct receipts_config config;
    struct broker *in;
    struct broker *out; /* for dead letters: confirms cannot be read between deliveries on `in` */
    struct pg *pg;
    pthread_t thread;
    int stop_fd;
    bool outage_logged, database_outage_logged;
};

static enum err apply_once(struct receipts *r, const struct receipt *receipt)
{
    enum err e = pg_is_up(r->pg) ? OK : pg_connect(r->pg, clock_ns() + CONNECT_NS, NULL);
    if (e)
        return ERR_CLOSED;
    return r->config.apply(r->config.context, r->pg, receipt, clock_ns() + APPLY_NS);
}

static bool is_temporary(enum err e)
{
    return e == ERR_CLOSED || e == ERR_TIMEOUT || e == ERR_CONFLICT || e == ERR_MEMORY || e == ERR_SYSTEM;
}

/* Retries while the database is not reachable, and sends heartbeats to the broker meanwhile. ERR_CLOSED on stop or
 * if the broker is lost: the message is requeued. */
static enum err apply(struct receipts *r, const struct receipt *receipt)
{
    for (int failures = 1;; failures++) {
        enum err e = apply_once(r, receipt);
        if (!is_temporary(e)) {
            r->database_outage_logged = false;
            return e;
        }
        if (!r->database_outage_logged)
            log_warn("receipts wait for the database", F_STR("error", err_name(e)));
        r->database_outage_logged = true;
        if (stop_wait(r->stop_fd, (int)(backoff_ns(reconnecting, failures) / NS_PER_MS)) ||
            broker_send_heartbeat(r->in))
            return ERR_CLOSED;
    }
}

/* Publishes an unchanged copy with the reason in a header. The original is acknowledged only after the confirm. */
static enum err move_to_dead_letters(struct receipts *r, const struct broker_delivery *d, const char *reason,
                                     struct why *why)
{
    char id[37];
    random_uuid(id);
    struct broker_message m = {.exchange = "",
                               .key = RECEIPTS_DEAD_QUEUE,
                               .content_type = d->content_type[0] ? d->content_type : NULL,
                               .id = id,
                               .reason = reason,
                               .body = d->body};
    enum publish_result publish_result;
    enum err e = broker_is_up(r->out) ? broker_check(r->out) : ERR_CLOSED;
    if (e && (e = broker_connect(r->out, why)))
        return e;
    if ((e = broker_publish(r->out, &m, why)) ||
        (e = broker_await_confirms(r->out, &publish_result, 1, CONFIRM_NS, why)))
        return e;
    if (publish_result != PUBLISH_CONFIRMED)
        return why_set(why, ERR_CLOSED, "the queue " RECEIPTS_DEAD_QUEUE " is missing or does not accept messages");
    log_warn("receipt refused", F_STR("reason", reason), F_STR("id", id));
    return OK;
}

static const char *outcome_of(enum err e)
{
    return e == OK ? "applied" : e == ERR_MISSING ? "unknown" : e == ERR_INPUT ? "malformed" : "refused";
}

static enum err parse_and_apply(struct receipts *r, const struct broker_delivery *d, struct why *reason)
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

static enum err handle_delivery(struct receipts *r, const struct broker_delivery *d, struct why *why)
{
    struct why reason = {""};
    if (d->redelivered)
        counter_add(&redelivered, 1);
    enum err e = parse_and_apply(r, d, &reason);
    if (e == ERR_CLOSED)
        return why_set(why, e, "interrupted; the receipt is requeued");
    counter_add(&handled, 1, outcome_of(e));
    reason.text[200] = '\0'; /* keeps the header short */
    if (e && (e = move_to_dead_letters(r, d, reason.text, why)))
        return e;
    return broker_ack(r->in, d->tag, why);
}

static enum err consume(struct receipts *r, struct why *why)
{
    enum err e = broker_connect(r->in, why);
    if (e || (e = broker_declare(r->in, why)) || (e = broker_consume(r->in, RECEIPTS_QUEUE, PREFETCH, why)))
        return e;
    r->outage_logged = false;
    log_info("receipts connected");
    while (!stop_is_raised(r->stop_fd)) {
        struct broker_delivery d = {0};
        e = broker_next(r->in, NEXT_NS, &d, why);
        if (e == ERR_TIMEOUT)
            continue;
        if (!e)
            e = handle_delivery(r, &d, why);
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
        if (e && !r->outage_logged && !stop_is_raised(r->stop_fd))
            log_warn("receipts wait for the broker", F_STR("reason", why.text));
        r->outage_logged = true;
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
    r->config.amqp_url = r->config.database_url = NULL; /* copied by broker_new() and pg_new() */
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
