/* The listener: notifications are delivered, and a gap in them is reported. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "pg/listener.h"
#include "server.h"

#define LONG_NS (60 * NS_PER_S)

struct observer {
    pthread_mutex_t lock;
    char last[128];
    int heard, up, down;
    bool trusted_too_early; /* listener_is_alive() was true before alive() had returned */
    struct listener *listener;
};

static void heard(void *context, const char *channel, const char *payload)
{
    struct observer *observer = context;
    pthread_mutex_lock(&observer->lock);
    observer->heard++;
    (void)snprintf(observer->last, sizeof observer->last, "%s: %s", channel, payload);
    pthread_mutex_unlock(&observer->lock);
}

static void alive(void *context, bool is_alive)
{
    struct observer *observer = context;
    pthread_mutex_lock(&observer->lock);
    observer->trusted_too_early |= observer->listener && listener_is_alive(observer->listener);
    *(is_alive ? &observer->up : &observer->down) += 1;
    pthread_mutex_unlock(&observer->lock);
}

static int peek(struct observer *observer, const int *member)
{
    pthread_mutex_lock(&observer->lock);
    int n = *member;
    pthread_mutex_unlock(&observer->lock);
    return n;
}

static void await(struct observer *observer, const int *member, int least)
{
    for (int64_t end = clock_ns() + LONG_NS; peek(observer, member) < least;) {
        assert_true(clock_ns() < end);
        (void)poll(NULL, 0, 2);
    }
}

static void await_alive(struct observer *observer, bool wanted)
{
    for (int64_t end = clock_ns() + LONG_NS; listener_is_alive(observer->listener) != wanted;) {
        assert_true(clock_ns() < end);
        (void)poll(NULL, 0, 2);
    }
}

static const char *const channels[] = {"plain", "With \"quotes\" and; DROP", NULL};

static void start(struct observer *observer, const char *url)
{
    struct why why = {""};
    *observer = (struct observer){.lock = PTHREAD_MUTEX_INITIALIZER};
    struct listener *listener = listener_start(
        &(struct listener_config){
            .url = url, .channels = channels, .context = observer, .heard = heard, .alive = alive},
        &why);
    if (!listener)
        fail_msg("%s", why.text);
    pthread_mutex_lock(&observer->lock);
    observer->listener = listener;
    pthread_mutex_unlock(&observer->lock);
}

static void stop(struct observer *observer)
{
    listener_stop(observer->listener);
    assert_int_equal(observer->up, observer->down);
    assert_false(observer->trusted_too_early);
}

static void notify(const char *url, const char *channel, const char *payload)
{
    static const struct statement tell = {"tell", "SELECT pg_notify($1, $2)", 2, "pg_notify:void"};
    struct pg *pg = must_connect(url, PG_PREPARE_OFF);
    struct pg_call call = {.ask = &tell, .args = {pg_text(channel), pg_text(payload)}};
    assert_int_equal(pg_ask(pg, &call, clock_ns() + LONG_NS), OK);
    pg_free(pg);
}

static void cut_listeners(const char *url)
{
    assert_int_equal(number_from(url, "SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity"
                                      " WHERE application_name = 'reclaim' AND pid <> pg_backend_pid()"),
                     1);
}

/* Waits for `count` more pings of the only listener. */
static void await_pings(const char *url, int count)
{
    int64_t end = clock_ns() + LONG_NS, last = 0;
    for (int seen = -1; seen < count; (void)poll(NULL, 0, 20)) {
        assert_true(clock_ns() < end);
        int64_t sent_us = number_from(url, "SELECT coalesce(max(extract(epoch FROM query_start) * 1000000), 0)::int8"
                                           " FROM pg_stat_activity WHERE query = 'SELECT 1 AS one'");
        seen += sent_us > last;
        last = sent_us;
    }
}

/* Redirects the log into this pipe until restore_log(). */
static void redirect_log(int pipe_fds[2])
{
    assert_int_equal(pipe(pipe_fds), 0);
    log_to_fd(pipe_fds[1]);
    log_threshold(LOG_WARN);
}

static void await_log(const int pipe_fds[2], const char *part)
{
    char text[4096] = "";
    for (size_t len = 0; !strstr(text, part);) {
        struct pollfd on = {.fd = pipe_fds[0], .events = POLLIN};
        assert_int_equal(poll(&on, 1, (int)(LONG_NS / NS_PER_MS)), 1);
        ssize_t more = read(pipe_fds[0], text + len, sizeof text - 1 - len);
        assert_true(more > 0);
        len += (size_t)more;
        text[len] = '\0';
    }
}

static void restore_log(const int pipe_fds[2])
{
    log_threshold(LOG_ERROR);
    log_to_fd(2);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

static void what_is_notified_is_heard(void **state)
{
    const char *url = server_url(*state);
    struct observer observer;
    start(&observer, url);
    await(&observer, &observer.up, 1);
    await_alive(&observer, true);
    for (int i = 0; i < 10; i++) {
        char payload[16], line[64];
        (void)snprintf(payload, sizeof payload, "%d", i);
        (void)snprintf(line, sizeof line, "%s: %s", channels[i % 2], payload);
        notify(url, "another", "nobody's");
        notify(url, channels[i % 2], payload);
        await(&observer, &observer.heard, i + 1);
        assert_string_equal(observer.last, line);
    }
    await_pings(url, 2);
    await_alive(&observer, true);
    assert_int_equal(observer.up, 1);
    stop(&observer);
    assert_int_equal(observer.heard, 10);
}

static void a_cut_connection_is_told_and_made_anew(void **state)
{
    const char *url = server_url(*state);
    struct observer observer;
    start(&observer, url);
    for (int i = 1; i <= 5; i++) {
        await(&observer, &observer.up, i);
        await_alive(&observer, true);
        notify(url, "plain", "x");
        await(&observer, &observer.heard, i);
        cut_listeners(url);
        await(&observer, &observer.down, i);
    }
    await(&observer, &observer.up, 6);
    stop(&observer);
}

static void a_restart_is_told(void **state)
{
    struct server *server = *state;
    struct observer observer;
    start(&observer, server_url(server));
    await_alive(&observer, true);
    server_shut(server);
    await(&observer, &observer.down, 1);
    assert_false(listener_is_alive(observer.listener));
    server_up(server);
    await(&observer, &observer.up, 2);
    notify(server_url(server), "plain", "again");
    await(&observer, &observer.heard, 1);
    stop(&observer);
}

static void a_server_that_hangs_is_not_alive(void **state)
{
    struct server *server = *state;
    struct observer observer;
    start(&observer, server_url(server));
    await_alive(&observer, true);
    pid_t backend =
        (pid_t)number_from(server_url(server), "SELECT pid FROM pg_stat_activity WHERE application_name = 'reclaim'"
                                               " AND pid <> pg_backend_pid()");
    server_hang(server, backend);
    clock_shift(3 * NS_PER_S); /* no ping can have been answered since */
    assert_false(listener_is_alive(observer.listener));
    await(&observer, &observer.down, 1);
    stop(&observer); /* while the server is down */
    server_resume(server, backend);
}

static void without_a_server_it_stops_all_the_same(void **state)
{
    (void)state;
    struct observer observer;
    int log[2];
    redirect_log(log);
    start(&observer, "postgresql://postgres@/postgres?host=/nonexistent");
    await_log(log, "\"listener lost\"");
    assert_false(listener_is_alive(observer.listener));
    stop(&observer);
    restore_log(log);
    for (int i = 0; i < 20; i++) { /* at different moments */
        start(&observer, server_url(*state));
        (void)poll(NULL, 0, i);
        stop(&observer);
    }
}

static void behind_a_pooler_it_is_never_alive(void **state)
{
    struct pooler *pooler = pooler_start(server_url(*state));
    struct observer observer;
    int log[2];
    redirect_log(log);
    start(&observer, pooler_url(pooler));
    await_log(log, "pooler");
    assert_false(listener_is_alive(observer.listener));
    stop(&observer);
    restore_log(log);
    assert_int_equal(observer.up, 0);
    pooler_free(pooler);
}

static void a_wrong_url_is_refused(void **state)
{
    (void)state;
    struct why why;
    assert_null(listener_start(&(struct listener_config){.url = "postgresql://%zz", .channels = channels}, &why));
}

static int start_server(void **state)
{
    *state = server_start(NULL);
    return 0;
}

static int stop_server(void **state)
{
    server_free(*state);
    return 0;
}

int main(void)
{
    log_threshold(LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_notified_is_heard),
        cmocka_unit_test(a_cut_connection_is_told_and_made_anew),
        cmocka_unit_test(a_restart_is_told),
        cmocka_unit_test(a_server_that_hangs_is_not_alive),
        cmocka_unit_test(without_a_server_it_stops_all_the_same),
        cmocka_unit_test(behind_a_pooler_it_is_never_alive),
        cmocka_unit_test(a_wrong_url_is_refused),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
