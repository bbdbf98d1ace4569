/* A running server: every request gets its reply, whichever thread or handler sends it. */
#include "http/server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/unit.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/reply.h"

#define WAITING_MAX 16
#define ANSWER_MS 30000

/* Requests that wait for another one; used only by the loop's thread, except for the count. */
static struct request *waiting[WAITING_MAX];
static atomic_int waiting_count;

static void wait_for_another(struct request *rq)
{
    waiting[atomic_load(&waiting_count)] = rq;
    atomic_fetch_add(&waiting_count, 1);
}

/* Answers all waiting requests from inside its handler, as a batch does without a database, and then itself. */
static void answer_all(struct request *rq)
{
    for (int i = atomic_exchange(&waiting_count, 0); i > 0; i--)
        reply_send(waiting[i - 1], 200);
    reply_send(rq, 200);
}

/* The same, but waits itself until the next such request answers it. */
static void answer_the_others(struct request *rq)
{
    for (int i = atomic_exchange(&waiting_count, 0); i > 0; i--)
        reply_send(waiting[i - 1], 200);
    wait_for_another(rq);
}

static const struct family families[] = {{.prefix = "/", .refuse = refuse_by_status}};
static const struct hold_rule short_hold = {.hold_ms = 20};
static const struct route routes[] = {
    {.method = METHOD_GET, .path = "/wait", .handle = wait_for_another},
    {.method = METHOD_GET, .path = "/wait-held", .handle = wait_for_another, .hold = &short_hold},
    {.method = METHOD_GET, .path = "/all", .handle = answer_all},
    {.method = METHOD_GET, .path = "/others", .handle = answer_the_others},
};
static const struct router router = {families, COUNT_OF(families), routes, COUNT_OF(routes)};
static const struct http_policy policy = {0};

static struct server *start(void)
{
    struct server *server = NULL;
    struct why why = {""};
    const struct server_config config = {.name = "public",
                                         .address = "127.0.0.1:0",
                                         .loops = 1,
                                         .connections_max = 100,
                                         .request_deadline_ns = 60 * NS_PER_S,
                                         .idle_ns = 60 * NS_PER_S,
                                         .router = &router,
                                         .policy = &policy};
    atomic_store(&waiting_count, 0);
    if (server_start(&config, &server, &why))
        fail_msg("%s", why.text);
    return server;
}

static int ask(const struct server *server, const char *path)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char request[128];
    int64_t port;
    assert_int_equal(str_to_i64(str_of(strrchr(server_address(server), ':') + 1), 1, 65535, &port), OK);
    to.sin_port = htons((uint16_t)port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    int len = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: example.com\r\n\r\n", path);
    assert_int_equal(send(fd, request, (size_t)len, MSG_NOSIGNAL), len);
    return fd;
}

static void until_waiting(int count)
{
    while (atomic_load(&waiting_count) < count)
        (void)poll(NULL, 0, 1);
}

static void assert_answered(int fd)
{
    char bytes[16] = "";
    struct pollfd on = {fd, POLLIN, 0};
    assert_int_equal(poll(&on, 1, ANSWER_MS), 1);
    assert_true(recv(fd, bytes, sizeof bytes - 1, 0) > 0);
    assert_memory_equal(bytes, "HTTP/1.1 200", 12);
    close(fd);
}

static void end(struct server *server)
{
    struct server_state state = server_read_state(server);
    for (; state.connections; state = server_read_state(server))
        (void)poll(NULL, 0, 1);
    assert_int_equal(state.working, 0);
    assert_int_equal(state.held, 0);
    assert_true(server_stop(server, clock_ns() + 60 * NS_PER_S));
}

static void requests_answered_from_inside_another_handler_get_their_answers(void **state UNUSED)
{
    struct server *server = start();
    int fds[WAITING_MAX];
    for (int i = 0; i < WAITING_MAX; i++) {
        fds[i] = ask(server, i % 2 ? "/wait" : "/wait-held");
        until_waiting(i + 1);
    }
    assert_answered(ask(server, "/all"));
    for (int i = 0; i < WAITING_MAX; i++)
        assert_answered(fds[i]);
    end(server);
}

static void a_handler_that_answers_others_is_not_taken_for_answered(void **state UNUSED)
{
    struct server *server = start();
    int first = ask(server, "/wait");
    until_waiting(1);
    int second = ask(server, "/others");
    assert_answered(first);
    until_waiting(1);
    assert_answered(ask(server, "/all"));
    assert_answered(second);
    end(server);
}

int main(void)
{
    log_threshold(LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_answered_from_inside_another_handler_get_their_answers),
        cmocka_unit_test(a_handler_that_answers_others_is_not_taken_for_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
