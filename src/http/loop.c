#include "http/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "http/refusal.h"
#include "http/strict.h"

/* libmicrohttpd scans all suspended connections whenever one is resumed: a tick resumes several of them at a time. */
#define RELEASE_TICK_NS (4 * NS_PER_MS)
#define DEADLINE_TICK_NS (50 * NS_PER_MS)
#define LOG_RETRY_MS 10

/* Paths are not unescaped: an escaped NUL must not end one, and no route has characters that need escaping. */
static size_t leave_escapes(void *context, struct MHD_Connection *connection, char *path)
{
    (void)context, (void)connection;
    return strlen(path);
}

static struct MHD_Daemon *daemon_new(struct loop *loop)
{
    const struct server_config *config = &loop->server->config;
    int listener = dup(loop->server->listener);
    if (listener < 0)
        return NULL;
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, peer_may_connect, loop, visit_handle, loop,
        MHD_OPTION_EXTERNAL_LOGGER, refusal_notice, loop, MHD_OPTION_LISTEN_SOCKET, listener,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)loop->server->connections_per_loop, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        CONNECTION_MEMORY, MHD_OPTION_URI_LOG_CALLBACK, visit_first_line, loop, MHD_OPTION_UNESCAPE_CALLBACK,
        leave_escapes, NULL, MHD_OPTION_NOTIFY_COMPLETED, visit_completed, loop, MHD_OPTION_NOTIFY_CONNECTION,
        peer_notify, loop, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(config->idle_ns / NS_PER_S + 1), STRICT_OPTIONS,
        MHD_OPTION_END);
    if (!daemon)
        close(listener);
    loop->listener = listener;
    return daemon;
}

static bool watch(struct loop *loop, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

enum err loop_open(struct loop *loop, struct server *server, struct why *why)
{
    *loop = (struct loop){.server = server, .epoll = -1, .wake = -1};
    pthread_mutex_init(&loop->inbox_lock, NULL);
    wheel_init(&loop->parked, RELEASE_TICK_NS, clock_ns());
    wheel_init(&loop->deadlines, DEADLINE_TICK_NS, clock_ns());
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->epoll < 0 || loop->wake < 0 || !watch(loop, loop->wake))
        return why_set(why, ERR_SYSTEM, "cannot create an event loop: %s", strerror(errno));

    loop->daemon = daemon_new(loop);
    const union MHD_DaemonInfo *info =
        loop->daemon ? MHD_get_daemon_info(loop->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!info || !watch(loop, info->epoll_fd))
        return why_set(why, ERR_SYSTEM, "cannot start serving HTTP on %s: %s", server->config.address, strerror(errno));
    return OK;
}

void loop_close(struct loop *loop)
{
    if (loop->daemon)
        MHD_stop_daemon(loop->daemon);
    log_batch_free(&loop->access_log);
    if (loop->wake >= 0)
        close(loop->wake);
    if (loop->epoll >= 0)
        close(loop->epoll);
    pthread_mutex_destroy(&loop->inbox_lock);
}

void loop_wake(struct loop *loop)
{
    uint64_t one = 1;
    ssize_t written = write(loop->wake, &one, sizeof one);
    (void)written; /* fails only when the counter is at its maximum, and the loop wakes up anyway then */
}

void loop_take_reply(struct visit *visit)
{
    struct loop *loop = visit->loop;
    if (visit_is_in_handler(visit)) { /* visit_arrived() checks the state when the handler returns */
        visit->state = VISIT_REPLIED;
        return;
    }
    pthread_mutex_lock(&loop->inbox_lock);
    bool was_empty = !loop->inbox;
    visit->next = loop->inbox;
    loop->inbox = visit;
    pthread_mutex_unlock(&loop->inbox_lock);
    if (was_empty)
        loop_wake(loop);
}

static void resume(struct visit *visit)
{
    visit->state = VISIT_DUE;
    MHD_resume_connection(visit->connection);
}

/* Takes the replies finished by other threads: holds each until its release time or sends it now. */
static void empty_inbox(struct loop *loop)
{
    pthread_mutex_lock(&loop->inbox_lock);
    struct visit *visit = loop->inbox;
    loop->inbox = NULL;
    pthread_mutex_unlock(&loop->inbox_lock);

    int64_t now = clock_ns();
    while (visit) {
        struct visit *next = visit->next;
        atomic_fetch_sub(&loop->working, 1);
        visit->state = VISIT_REPLIED;
        visit_work_done(visit);
        if (visit->release_ns > now) {
            wheel_add(&loop->parked, &visit->parked, visit->release_ns);
            atomic_fetch_add(&loop->held, 1);
        } else {
            resume(visit);
        }
        visit = next;
    }
}

static void release_due(struct loop *loop)
{
    struct wheel_entry *entry;
    int64_t now = clock_ns();
    while ((entry = wheel_expire(&loop->parked, now))) {
        atomic_fetch_sub(&loop->held, 1);
        resume(OWNER_OF(entry, struct visit, parked));
    }
}

static int wait_ms(struct loop *loop)
{
    if (loop->has_room) {
        loop->has_room = false;
        return 0;
    }
    MHD_UNSIGNED_LONG_LONG daemon_ms;
    int64_t next_ns = wheel_next_ns(&loop->parked), cut_ns = wheel_next_ns(&loop->deadlines);
    int ms = clock_ms_until(next_ns < cut_ns ? next_ns : cut_ns, 1000);
    if (loop->log_waits && ms > LOG_RETRY_MS)
        ms = LOG_RETRY_MS;
    if (MHD_get_timeout(loop->daemon, &daemon_ms) == MHD_YES && daemon_ms < (unsigned)ms)
        ms = (int)daemon_ms;
    return ms;
}

static void stop_listening(struct loop *loop)
{
    loop->quiet = true;
    peers_watch_listener(loop);
    MHD_socket listener = MHD_quiesce_daemon(loop->daemon);
    if (listener != MHD_INVALID_SOCKET)
        close(listener);
}

void *loop_run(void *context)
{
    struct loop *loop = context;
    struct server *server = loop->server;
    for (;;) {
        struct epoll_event events[3];
        peers_watch_listener(loop);
        int ready = epoll_wait(loop->epoll, events, COUNT_OF(events), wait_ms(loop));
        for (int i = 0; i < ready; i++) {
            uint64_t count;
            if (events[i].data.fd == loop->wake && read(loop->wake, &count, sizeof count) < 0)
                continue;
            if (events[i].data.fd == loop->listener)
                peers_make_room(loop);
        }
        empty_inbox(loop);
        release_due(loop);
        peers_close_late(loop);
        MHD_run(loop->daemon);
        loop->log_waits = !log_batch_write(&loop->access_log);

        if (!atomic_load(&server->draining))
            continue;
        if (!loop->quiet)
            stop_listening(loop);
        if (loop->visits == 0)
            return NULL;
        if (clock_ns() >= atomic_load(&server->drain_until_ns))
            return loop;
    }
}
