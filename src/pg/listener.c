#include "pg/listener.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "pg/inside.h"

#define CONNECT_NS (5 * NS_PER_S)
#define PING_EVERY_NS NS_PER_S
#define PING_WAIT_NS (2 * NS_PER_S)
#define ALIVE_NS (3 * NS_PER_S)
#define SCRIPT_CEILING 65536
#define NEVER_PINGED INT64_MIN

static const struct backoff reconnecting = {100 * NS_PER_MS, 5 * NS_PER_S};

struct listener {
    struct listener_config config;
    struct pg *pg;
    struct buf script; /* LISTEN "a"; LISTEN "b"; */
    int stop_fd;       /* raised by listener_stop() */
    pthread_t thread;
    bool outage_logged;
    _Atomic int64_t pinged_ns; /* when the last ping that was answered was sent */
};

static const struct statement listener_ping = {"listener_ping", "SELECT 1 AS one", 0, "one:int4"};

static void deliver_notifications(struct listener *l)
{
    for (PGnotify *n; pg_is_up(l->pg) && (n = PQnotifies(l->pg->conn)); PQfreemem(n))
        l->config.heard(l->config.context, n->relname, n->extra);
}

/* Notifications that arrived before the reply are delivered before listener_is_alive() can rely on this ping. */
static bool ping(struct listener *l)
{
    int64_t sent_ns = clock_ns();
    struct pg_call call = {.ask = &listener_ping};
    if (pg_ask(l->pg, &call, sent_ns + PING_WAIT_NS))
        return false;
    deliver_notifications(l);
    atomic_store(&l->pinged_ns, sent_ns);
    return true;
}

static enum err connect_and_listen(struct listener *l, struct why *why)
{
    int64_t deadline_ns = clock_ns() + CONNECT_NS;
    enum err e = pg_connect(l->pg, deadline_ns, why);
    if (e || (e = pg_require_direct(l->pg, why)))
        return e;
    return pg_script(l->pg, l->script.at, deadline_ns, why);
}

static void log_outage_once(struct listener *l, const char *reason)
{
    if (!l->outage_logged)
        log_warn("listener lost", F_STR("reason", reason));
    l->outage_logged = true;
}

/* Runs until the connection is lost (true) or the listener is stopped (false). */
static bool receive(struct listener *l)
{
    int64_t next_ping_ns = clock_ns();
    for (;;) {
        if (clock_ns() >= next_ping_ns) {
            next_ping_ns = clock_ns() + PING_EVERY_NS;
            if (!ping(l))
                return true;
        }
        struct pollfd on[2] = {{.fd = l->stop_fd, .events = POLLIN}, {.fd = pg_socket(l->pg), .events = POLLIN}};
        if (poll(on, 2, clock_ms_until(next_ping_ns, 1000)) > 0 && on[0].revents)
            return false;
        if (!pg_is_alive(l->pg))
            return true;
        deliver_notifications(l);
    }
}

/* Calls alive(true) before listener_is_alive() becomes true, and alive(false) after it has become false. */
static void run_connection(struct listener *l)
{
    l->outage_logged = false;
    log_info("listener connected");
    l->config.alive(l->config.context, true);
    bool lost = receive(l);
    atomic_store(&l->pinged_ns, NEVER_PINGED);
    if (lost)
        log_outage_once(l, "the connection ended or a ping was not answered");
    l->config.alive(l->config.context, false);
}

static void *run(void *context)
{
    struct listener *l = context;
    int failures = 0;
    while (!stop_wait(l->stop_fd, backoff_jittered_ms(reconnecting, failures))) {
        struct why why = {""};
        int64_t began_ns = clock_ns();
        enum err e = connect_and_listen(l, &why);
        if (!e)
            run_connection(l);
        else if (!stop_is_raised(l->stop_fd))
            log_outage_once(l, why.text);
        pg_disconnect(l->pg);
        /* Reconnect without a pause when the connection was stable before. */
        failures = !e && clock_ns() - began_ns > PING_EVERY_NS ? 0 : failures + 1;
    }
    return NULL;
}

static void add_channel(struct buf *script, const char *channel)
{
    buf_addz(script, "LISTEN \"");
    for (; *channel; channel++)
        buf_add(script, *channel == '"' ? STR("\"\"") : (struct str){channel, 1});
    buf_addz(script, "\";\n");
}

static void free_listener(struct listener *l)
{
    pg_free(l->pg);
    buf_free(&l->script);
    stop_free(l->stop_fd);
    free(l);
}

struct listener *listener_start(const struct listener_config *config, struct why *why)
{
    if (pg_check_url(config->url, why))
        return NULL;
    struct listener *l = calloc(1, sizeof *l);
    if (!l) {
        (void)why_set(why, ERR_MEMORY, "no memory for the database listener");
        return NULL;
    }
    l->config = *config;
    l->config.url = NULL; /* copied by pg_new() and add_channel(); the caller may free its own */
    l->config.channels = NULL;
    atomic_init(&l->pinged_ns, NEVER_PINGED);
    l->script = buf_new(SCRIPT_CEILING);
    for (size_t i = 0; config->channels[i]; i++)
        add_channel(&l->script, config->channels[i]);
    buf_add(&l->script, (struct str){"", 1});
    l->stop_fd = stop_new();
    l->pg = pg_new(config->url, PG_PREPARE_OFF);
    if (l->pg)
        pg_give_up_when(l->pg, l->stop_fd);
    if (!l->pg || l->stop_fd < 0 || l->script.failed || pthread_create(&l->thread, NULL, run, l) != 0) {
        (void)why_set(why, ERR_SYSTEM, "no memory, descriptor or thread for the database listener");
        free_listener(l);
        return NULL;
    }
    return l;
}

void listener_stop(struct listener *l)
{
    stop_raise(l->stop_fd);
    pthread_join(l->thread, NULL);
    free_listener(l);
}

bool listener_is_alive(const struct listener *l)
{
    int64_t pinged_ns = atomic_load(&l->pinged_ns);
    return pinged_ns != NEVER_PINGED && clock_ns() - pinged_ns < ALIVE_NS;
}
