#include "work/leader.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/stop.h"
#include "pg/lock_ids.h"

#define CHECK_EVERY_MS 1000
#define CHECK_NS (2 * NS_PER_S)
#define DUTY_NS (60 * NS_PER_S)

METRIC_GAUGE(leading, "reclaim_leader", "1 while this instance is the leader.");
METRIC_COUNTER(duties_run, "reclaim_leader_duties_total", "Duties run by the leader.", "duty", "outcome");

const struct statement leader_try = {
    .name = "leader_try",
    .sql = "SELECT pg_catalog.pg_try_advisory_lock(" LOCK_CLASS ", " LOCK_LEADER ") AS mine",
    .params = 0,
    .columns = "mine:bool",
};

/* PostgreSQL ends the session if this process hangs, so that another instance can lead. The setting exists from 14
 * on. */
const struct statement leader_expire = {
    .name = "leader_expire",
    .sql = "SELECT pg_catalog.set_config(name, '10000', false) AS after FROM pg_catalog.pg_settings"
           " WHERE name = 'idle_session_timeout'",
    .params = 0,
    .columns = "after:text",
};

/* Not only that the connection is there: the lock must be this backend's. A pooler that was not recognised may have
 * another backend answer. A key of two numbers is classid and objid. */
const struct statement leader_ping = {
    .name = "leader_ping",
    .sql = "SELECT EXISTS (SELECT FROM pg_catalog.pg_locks l WHERE l.locktype = 'advisory' AND l.granted"
           " AND l.pid = pg_catalog.pg_backend_pid() AND l.classid = " LOCK_CLASS " AND l.objid = " LOCK_LEADER
           " AND l.objsubid = 2) AS held",
    .params = 0,
    .columns = "held:bool",
};

struct leader {
    struct leader_config config;
    struct duty duties[DUTIES_MAX];
    int64_t due_ns[DUTIES_MAX];
    struct pg *pg;
    pthread_t thread;
    int stop_fd; /* readable on stop */
    int mine_fd; /* readable while mine */
    atomic_bool mine;
    bool pooler_logged;
};

static void set_mine(struct leader *l, bool mine)
{
    if (atomic_exchange(&l->mine, mine) == mine)
        return;
    uint64_t one = 1;
    ssize_t moved = mine ? write(l->mine_fd, &one, sizeof one) : read(l->mine_fd, &one, sizeof one);
    (void)moved; /* cannot fail: the counter is 0 before the write and 1 before the read */
    gauge_set(&leading, mine);
    log_info(mine ? "leading" : "no longer leading");
    for (size_t i = 0; i < l->config.duty_count; i++)
        l->due_ns[i] = clock_ns(); /* a new leader runs its duties at once */
}

/* Through a pooler several instances would get the lock: none leads there. */
static enum err connect_directly(struct leader *l, int64_t deadline_ns)
{
    struct why why = {""};
    enum err e = pg_connect(l->pg, deadline_ns, NULL);
    if (e || !(e = pg_require_direct(l->pg, &why)))
        return e;
    pg_disconnect(l->pg);
    if (!l->pooler_logged)
        log_error("this instance cannot lead", F_STR("why", why.text));
    l->pooler_logged = true;
    return e;
}

/* Checks that the connection, and with it the lock, is still held; otherwise tries to get both. */
static void check_leadership(struct leader *l)
{
    int64_t deadline_ns = clock_ns() + CHECK_NS;
    if (!pg_is_up(l->pg) && connect_directly(l, deadline_ns)) {
        set_mine(l, false);
        return;
    }
    struct pg_call calls[] = {{.ask = &leader_expire}, {.ask = atomic_load(&l->mine) ? &leader_ping : &leader_try}};
    const struct pg_call *call = &calls[1];
    if (pg_trip(l->pg, calls, COUNT_OF(calls), deadline_ns) || call->rows != 1) {
        pg_disconnect(l->pg); /* releases the lock, which may have been granted */
        set_mine(l, false);
        return;
    }
    set_mine(l, pg_get_bool(call, 0, 0));
}

static void run_duties(struct leader *l)
{
    for (size_t i = 0; i < l->config.duty_count && atomic_load(&l->mine); i++) {
        const struct duty *duty = &l->duties[i];
        if (clock_ns() < l->due_ns[i])
            continue;
        l->due_ns[i] = clock_ns() + duty->every_ns;
        enum err e = duty->run(duty->context, l->pg, clock_ns() + DUTY_NS);
        counter_add(&duties_run, 1, duty->name, e ? "failed" : "done");
        if (e)
            log_warn("duty failed", F_STR("duty", duty->name), F_STR("error", err_name(e)));
        if (!pg_is_up(l->pg))
            set_mine(l, false);
    }
}

static void *run_leader(void *context)
{
    struct leader *l = context;
    do {
        check_leadership(l);
        run_duties(l);
    } while (!stop_wait(l->stop_fd, CHECK_EVERY_MS));
    pg_disconnect(l->pg);
    set_mine(l, false);
    return NULL;
}

static void free_leader(struct leader *l)
{
    stop_free(l->stop_fd);
    if (l->mine_fd >= 0)
        close(l->mine_fd);
    pg_free(l->pg);
    free(l);
}

struct leader *leader_start(const struct leader_config *config, struct why *why)
{
    struct leader *l = calloc(1, sizeof *l);
    if (!l)
        goto no_memory;
    l->config = *config;
    for (size_t i = 0; i < config->duty_count; i++)
        l->duties[i] = config->duties[i];
    l->stop_fd = stop_new();
    l->mine_fd = eventfd(0, EFD_CLOEXEC);
    l->pg = pg_new(config->direct_url, PG_PREPARE_OFF);
    if (l->stop_fd >= 0 && l->mine_fd >= 0 && l->pg && pthread_create(&l->thread, NULL, run_leader, l) == 0)
        return l;
    free_leader(l);
no_memory:
    why_set(why, ERR_MEMORY, "no memory, descriptor or thread for leader election");
    return NULL;
}

void leader_stop(struct leader *l)
{
    if (!l)
        return;
    stop_raise(l->stop_fd);
    pthread_join(l->thread, NULL);
    free_leader(l);
}

bool leader_is_me(const struct leader *l)
{
    return atomic_load(&l->mine);
}

int leader_fd(const struct leader *l)
{
    return l->mine_fd;
}
