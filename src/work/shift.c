#include "work/shift.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/restored.h"
#include "base/stop.h"

#define CHECK_EVERY_MS 500 /* time to detect that this instance no longer leads, and that erasures were replayed */
#define CONNECT_NS (5 * NS_PER_S)
#define RETRY_NS (5 * NS_PER_S) /* after a failure */

struct shift {
    struct shift_config config;
    struct pg *pg;
    pthread_t thread;
    int stop_fd;      /* readable on stop */
    bool failed;      /* the last run failed: logged once */
    bool interrupted; /* the run was ended before it was complete */
};

static bool is_readable(int fd)
{
    struct pollfd on = {fd, POLLIN, 0};
    return poll(&on, 1, 0) > 0;
}

bool shift_goes_on(struct shift *s)
{
    if (!s)
        return true;
    s->interrupted = stop_is_raised(s->stop_fd) || !is_readable(s->config.leads_fd) || restored_may_be();
    return !s->interrupted;
}

/* Waits until the next run is due if this instance leads, else until it leads. False on stop. */
static bool wait_until_due(const struct shift *s, bool leads, int64_t due_ns)
{
    struct pollfd on[2] = {{s->stop_fd, POLLIN, 0}, {s->config.leads_fd, POLLIN, 0}};
    if (leads)
        (void)poll(on, 1, clock_ms_until(due_ns, CHECK_EVERY_MS));
    else
        (void)poll(on, 2, -1);
    return !on[0].revents;
}

static enum err run(struct shift *s)
{
    struct why why = {""};
    enum err e = pg_is_up(s->pg) ? OK : pg_connect(s->pg, clock_ns() + CONNECT_NS, &why);
    if (!e)
        e = s->config.run(s->config.context, s->pg, s);
    if (e && !s->failed)
        log_warn("shift failed", F_STR("shift", s->config.name), F_STR("error", err_name(e)), F_STR("why", why.text));
    s->failed = e != OK;
    return e;
}

static void *run_shift(void *context)
{
    struct shift *s = context;
    int64_t due_ns = 0, shift_ms = 0;
    for (;;) {
        bool leads = is_readable(s->config.leads_fd);
        if (clock_sandbox_shift_ms() != shift_ms)
            due_ns = 0; /* what the sandbox's clock has made due */
        if (!leads) {
            due_ns = 0; /* a new leader runs at once */
            pg_disconnect(s->pg);
        } else if (clock_ns() >= due_ns) {
            int64_t every_ns = atomic_load(s->config.every_ms) * NS_PER_MS;
            int64_t began_ns = clock_ns();
            shift_ms = clock_sandbox_shift_ms();
            s->interrupted = false;
            bool again = run(s) != OK && every_ns > RETRY_NS;
            due_ns = !s->interrupted     ? began_ns + (again ? RETRY_NS : every_ns)
                     : restored_may_be() ? clock_ns() + CHECK_EVERY_MS * NS_PER_MS
                                         : 0;
        }
        if (!wait_until_due(s, leads, due_ns))
            break;
    }
    pg_disconnect(s->pg);
    return NULL;
}

struct shift *shift_start(const struct shift_config *config, struct why *why)
{
    struct shift *s = calloc(1, sizeof *s);
    if (!s)
        goto no_memory;
    s->config = *config;
    s->stop_fd = stop_new();
    s->pg = pg_new(config->url, PG_PREPARE_OFF);
    if (s->stop_fd >= 0 && s->pg) {
        pg_give_up_when(s->pg, s->stop_fd);
        if (pthread_create(&s->thread, NULL, run_shift, s) == 0)
            return s;
    }
    stop_free(s->stop_fd);
    pg_free(s->pg);
    free(s);
no_memory:
    (void)why_set(why, ERR_MEMORY, "no memory or no thread for %s", config->name);
    return NULL;
}

void shift_stop(struct shift *s)
{
    if (!s)
        return;
    stop_raise(s->stop_fd);
    pthread_join(s->thread, NULL);
    stop_free(s->stop_fd);
    pg_free(s->pg);
    free(s);
}
