/* A running server: every request gets its reply, whichever thread or handler sends it. */
#include "http/server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
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

/* Requests that wait for another one, of all loops. */
static pthread_mutex_t waiting_lock = PTHREAD_MUTEX_INITIALIZER;
static struct request *waiting[WAITING_MAX];
static atomic_int waiting_count;

static void wait_for_another(struct request *rq)
{
    pthread_mutex_lock(&waiting_lock);
    waiting[atomic_load(&waiting_count)] = rq;
    atomic_fetch_add(&waiting_count, 1);
    pthread_mutex_unlock(&waiting_lock);
}

/* As a batch does that cannot reach its database: from inside whichever handler found that out. */
static void answer_waiting(void)
{
    struct request *found[WAITING_MAX];
    pthread_mutex_lock(&waiting_lock);
    int count = atomic_exchange(&waiting_count, 0);
    memcpy(found, waiting, sizeof found);
    pthread_mutex_unlock(&waiting_lock);
    while (count > 0)
        reply_send(found[--count], 200);
}

/* Answers all waiting requests from inside its handler, and then itself. */
static void answer_all(struct request *rq)
{
    answer_waiting();
    reply_send(rq, 200);
}

/* The same, but waits itself until the next such request answers it. */
static void answer_the_others(struct request *rq)
{
    answer_waiting();
    wait_for_another(rq);
}

/* More than the buffers of both sockets hold. */
static void answer_at_length(struct request *rq)
{
    static char zeros[64 * 1024 * 1024];
    reply_body(rq, "application/octet-stream", (struct str){zeros, sizeof zeros});
    reply_send(rq, 200);
}

static const struct family families[] = {{.prefix = "/", .refuse = refuse_by_status}};
static const struct hold_rule short_hold = {.hold_ms = 20};
static const struct route routes[] = {
    {.method = METHOD_GET, .path = "/wait", .handle = wait_for_another},
    {.method = METHOD_GET, .path = "/wait-held", .handle = wait_for_another, .hold = &short_hold},
    {.method = METHOD_GET, .path = "/all", .handle = answer_all},
    {.method = METHOD_GET, .path = "/large", .handle = answer_at_length},
    {.method = METHOD_GET, .path = "/others", .handle = answer_the_others},
};
static const struct router router = {families, COUNT_OF(families), routes, COUNT_OF(routes)};
static const struct http_policy policy = {0};

static const struct server_config standard = {.name = "public",
                                              .address = "127.0.0.1:0",
                                              .loops = 1,
                                              .connections_max = 100,
                                              .request_deadline_ns = 60 * NS_PER_S,
                                              .idle_ns = 60 * NS_PER_S,
                                              .router = &router,
                                              .policy = &policy};

static struct server *start_with(struct server_config config)
{
    struct server *server = NULL;
    struct why why = {""};
    atomic_store(&waiting_count, 0);
    if (server_start(&config, &server, &why))
        fail_msg("%s", why.text);
    return server;
}

static struct server *start_for(int connections_max)
{
    struct server_config config = standard;
    config.connections_max = connections_max;
    return start_with(config);
}

static struct server *start(void)
{
    return start_with(standard);
}

/* From 127.0.0.`last`. */
static int open_from(const struct server *server, int last)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + (uint32_t)last)};
    int64_t port;
    assert_int_equal(str_to_i64(str_of(strrchr(server_address(server), ':') + 1), 1, 65535, &port), OK);
    to.sin_port = htons((uint16_t)port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void send_request(int fd, const char *path)
{
    char request[128];
    int len = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: example.com\r\n\r\n", path);
    assert_int_equal(send(fd, request, (size_t)len, MSG_NOSIGNAL), len);
}

static int ask(const struct server *server, const char *path)
{
    int fd = open_from(server, 1);
    send_request(fd, path);
    return fd;
}

static void until_connections(const struct server *server, int count)
{
    while (server_read_state(server).connections != count)
        (void)poll(NULL, 0, 1);
}

static void until_waiting(int count)
{
    while (atomic_load(&waiting_count) < count)
        (void)poll(NULL, 0, 1);
}

static void assert_status(int fd, const char *status)
{
    char bytes[1024] = "";
    struct pollfd on = {fd, POLLIN, 0};
    assert_int_equal(poll(&on, 1, ANSWER_MS), 1);
    assert_true(recv(fd, bytes, sizeof bytes - 1, 0) > 0);
    assert_memory_equal(bytes, "HTTP/1.1 ", 9);
    assert_memory_equal(bytes + 9, status, 3);
}

static void assert_answered(int fd)
{
    assert_status(fd, "200");
    close(fd);
}

static void assert_closed(int fd)
{
    char byte;
    struct pollfd on = {fd, POLLIN, 0};
    assert_int_equal(poll(&on, 1, ANSWER_MS), 1);
    assert_true(recv(fd, &byte, 1, 0) <= 0);
    close(fd);
}

static bool is_open(int fd)
{
    struct pollfd on = {fd, POLLIN, 0};
    return poll(&on, 1, 0) == 0;
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

/* Which loop accepts a connection is chance: over the rounds, requests wait in one loop and are answered in the other. */
static void requests_of_one_loop_are_answered_from_inside_a_handler_of_another(void **state UNUSED)
{
    struct server_config config = standard;
    config.loops = 3;
    struct server *server = start_with(config);
    for (int round = 0; round < 30; round++) {
        int fds[WAITING_MAX];
        for (int i = 0; i < WAITING_MAX; i++)
            fds[i] = ask(server, i % 2 ? "/wait" : "/wait-held");
        until_waiting(WAITING_MAX);
        assert_answered(ask(server, "/all"));
        for (int i = 0; i < WAITING_MAX; i++)
            assert_answered(fds[i]);
    }
    end(server);
}

/* A client that left is noticed when its answer is sent: connections go back to the number of clients. */
static void clients_that_left_before_their_answer_leave_no_connection(void **state UNUSED)
{
    struct server_config config = standard;
    config.loops = 2;
    struct server *server = start_with(config);
    int stays = ask(server, "/wait");
    until_waiting(1);
    for (int i = 1; i < WAITING_MAX; i++) {
        int fd = ask(server, i % 2 ? "/wait" : "/wait-held");
        until_waiting(i + 1);
        if (i % 3 == 0) /* with a reset */
            assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger)), 0);
        close(fd);
    }
    int asks = ask(server, "/others");
    assert_status(stays, "200");
    until_connections(server, 2);
    until_waiting(1);
    answer_waiting();
    assert_status(asks, "200");
    until_connections(server, 2);
    close(stays);
    close(asks);
    end(server);
}

static void a_full_server_closes_the_longest_idle_connection_for_a_new_one(void **state UNUSED)
{
    enum { MOST = 8 };
    struct server *server = start_for(MOST);
    int fds[MOST];
    for (int i = 0; i < MOST; i++) {
        fds[i] = open_from(server, 1);
        until_connections(server, i + 1);
    }
    /* The first has used its connection since: the second is idle for longest. */
    send_request(fds[0], "/all");
    assert_status(fds[0], "200");
    assert_answered(ask(server, "/all"));
    assert_closed(fds[1]);
    for (int i = 2; i < MOST; i++)
        assert_true(is_open(fds[i]));
    send_request(fds[0], "/all");
    assert_answered(fds[0]);
    for (int i = 2; i < MOST; i++)
        close(fds[i]);
    end(server);
}

static void a_full_server_never_closes_connections_with_a_request_in_work_or_held(void **state UNUSED)
{
    enum { MOST = 8 };
    struct server *server = start_for(MOST);
    int fds[MOST];
    for (int i = 0; i < MOST; i++) {
        fds[i] = ask(server, i % 2 ? "/wait" : "/wait-held");
        until_waiting(i + 1);
    }
    /* No connection can be closed for them: they wait to be accepted until one ends. */
    int late = ask(server, "/all"), idle = open_from(server, 1);
    (void)poll(NULL, 0, 50);
    assert_true(is_open(late));
    close(fds[0]); /* the server notices when it answers */
    answer_waiting();
    for (int i = 1; i < MOST; i++)
        assert_answered(fds[i]);
    assert_answered(late);
    close(idle);
    end(server);
}

static void clients_that_do_not_read_their_answers_keep_nobody_from_being_served(void **state UNUSED)
{
    enum { MOST = 4 };
    struct server *server = start_for(MOST);
    int fds[MOST];
    for (int i = 0; i < MOST; i++) {
        fds[i] = ask(server, "/large");
        assert_status(fds[i], "200"); /* and no more of it is read */
    }
    assert_answered(ask(server, "/all"));
    for (int i = 0; i < MOST; i++)
        close(fds[i]);
    end(server);
}

static void a_flood_of_idle_connections_keeps_nobody_from_being_served(void **state UNUSED)
{
    enum { MOST = 32, FLOOD = 300 };
    struct server_config config = standard;
    config.connections_max = MOST;
    config.loops = 2;
    struct server *server = start_with(config);
    int fds[FLOOD];
    for (int i = 0; i < FLOOD; i++) {
        fds[i] = open_from(server, 1);
        /* Half of them begin a request: that keeps no place either. */
        if (i % 2)
            assert_int_equal(send(fds[i], "GET /all HTTP/1.1\r\nX-A: ", 24, MSG_NOSIGNAL), 24);
    }
    for (int i = 0; i < 20; i++)
        assert_answered(ask(server, "/all"));
    for (int i = 0; i < FLOOD; i++)
        close(fds[i]);
    end(server);
}

static void a_network_has_no_more_connections_than_it_may(void **state UNUSED)
{
    struct server_config config = standard;
    config.connections_per_network = 3;
    config.counts_loopback = true;
    struct server *server = start_with(config);
    int fds[3];
    for (int i = 0; i < 3; i++)
        fds[i] = open_from(server, 2);
    until_connections(server, 3);
    assert_closed(open_from(server, 2));
    int other = open_from(server, 3);
    send_request(other, "/all");
    assert_answered(other);
    until_connections(server, 3);

    close(fds[0]);
    until_connections(server, 2);
    fds[0] = open_from(server, 2);
    for (int i = 0; i < 3; i++) {
        send_request(fds[i], "/all");
        assert_answered(fds[i]);
    }
    end(server);
}

static void loopback_and_trusted_proxies_have_as_many_as_they_open(void **state UNUSED)
{
    struct cidr proxy;
    assert_int_equal(cidr_parse(STR("127.0.0.2"), &proxy), OK);
    const struct http_policy trusting = {.proxies = &proxy, .proxy_count = 1};
    for (int round = 0; round < 2; round++) {
        struct server_config config = standard;
        config.connections_per_network = 1;
        config.counts_loopback = round == 1;
        config.policy = &trusting;
        struct server *server = start_with(config);
        int fds[5];
        for (int i = 0; i < 5; i++)
            fds[i] = open_from(server, 2);
        for (int i = 0; i < 5; i++) {
            send_request(fds[i], "/all");
            assert_answered(fds[i]);
        }
        end(server);
    }
}

/* Sends the head and returns all that comes until the server closes the connection. */
static const char *exchange(const struct server *server, const char *head)
{
    static char bytes[65536];
    size_t len = 0;
    int fd = open_from(server, 1);
    assert_int_equal(send(fd, head, strlen(head), MSG_NOSIGNAL), strlen(head));
    for (ssize_t got = 1; got > 0; len += got > 0 ? (size_t)got : 0) {
        struct pollfd on = {fd, POLLIN, 0};
        assert_int_equal(poll(&on, 1, ANSWER_MS), 1);
        got = recv(fd, bytes + len, sizeof bytes - 1 - len, 0);
    }
    bytes[len] = '\0';
    close(fd);
    return bytes;
}

/* One answer in the form of the server's own refusals, of the length that it says, with nothing behind it. */
static void assert_refused(const char *answer, const char *status, const char *code)
{
    char expected[64];
    int64_t length = -1;
    assert_memory_equal(answer, "HTTP/1.1 ", 9);
    assert_memory_equal(answer + 9, status, 3);
    const char *body = strstr(answer, "\r\n\r\n"), *field = strstr(answer, "Content-Length: ");
    if (!body || !field || field > body) {
        fail_msg("no length or body: %s", answer);
        return;
    }
    field += strlen("Content-Length: ");
    assert_int_equal(str_to_i64((struct str){field, strcspn(field, "\r")}, 0, 10000, &length), OK);
    assert_int_equal(strlen(body + 4), length);
    (void)snprintf(expected, sizeof expected, "{\"error\":\"%s\",", code);
    assert_memory_equal(body + 4, expected, strlen(expected));
    assert_non_null(strstr(answer, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(answer, "\r\nX-Correlation-Id: "));
    assert_non_null(strstr(answer, "\r\nConnection: close\r\n"));
}

static void heads_that_the_library_refuses_when_they_are_complete_get_one_answer_of_ours(void **state UNUSED)
{
    static char head[16384];
    struct server *server = start();
    int before = ask(server, "/wait"); /* others with an incomplete request, or one in work, are left alone */
    until_waiting(1);
    static const char half[] = "GET /all HTTP/1.1\r\nHost: a\r\nContent-Length: many\r\n";
    int partial = open_from(server, 1);
    assert_int_equal(send(partial, half, sizeof half - 1, MSG_NOSIGNAL), sizeof half - 1);
    until_connections(server, 2);
    static const char *const lengths[] = {"many", "-1", "+5", "0x10", "5, 5", "", "5 5"};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        (void)snprintf(head, sizeof head, "POST /all HTTP/1.1\r\nHost: a\r\nContent-Length: %s\r\n\r\n{}", lengths[i]);
        assert_refused(exchange(server, head), "400", "BAD_REQUEST");
    }
    assert_refused(
        exchange(server, "POST /all HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n{}"), "413",
        "TOO_LARGE");
    int len = snprintf(head, sizeof head, "GET /all HTTP/1.1\r\nHost: a\r\nCookie: a=");
    memset(head + len, 'x', 9000);
    (void)snprintf(head + len + 9000, 8, "\r\n\r\n");
    assert_refused(exchange(server, head), "431", "HEADERS_TOO_LARGE");
    close(partial);
    assert_answered(ask(server, "/all"));
    assert_answered(before);
    end(server);
}

/* From heads that leave room for an answer to those that do not: each has one. */
static void a_head_of_any_size_gets_an_answer(void **state UNUSED)
{
    static char head[20000];
    struct server *server = start();
    for (int size = 12000; size < 17000; size += 100) {
        int len = snprintf(head, sizeof head, "GET /all HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Long: ");
        memset(head + len, 'x', (size_t)(size - len - 4));
        (void)snprintf(head + size - 4, 8, "\r\n\r\n");
        const char *answer = exchange(server, head);
        if (strncmp(answer, "HTTP/1.1 ", 9) != 0)
            fail_msg("no answer to a head of %d bytes", size);
        assert_true(strncmp(answer + 9, "200", 3) == 0 || strncmp(answer + 9, "431", 3) == 0);
    }
    end(server);
}

int main(void)
{
    log_threshold(LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_answered_from_inside_another_handler_get_their_answers),
        cmocka_unit_test(a_handler_that_answers_others_is_not_taken_for_answered),
        cmocka_unit_test(requests_of_one_loop_are_answered_from_inside_a_handler_of_another),
        cmocka_unit_test(clients_that_left_before_their_answer_leave_no_connection),
        cmocka_unit_test(a_full_server_closes_the_longest_idle_connection_for_a_new_one),
        cmocka_unit_test(a_full_server_never_closes_connections_with_a_request_in_work_or_held),
        cmocka_unit_test(clients_that_do_not_read_their_answers_keep_nobody_from_being_served),
        cmocka_unit_test(a_flood_of_idle_connections_keeps_nobody_from_being_served),
        cmocka_unit_test(a_network_has_no_more_connections_than_it_may),
        cmocka_unit_test(heads_that_the_library_refuses_when_they_are_complete_get_one_answer_of_ours),
        cmocka_unit_test(a_head_of_any_size_gets_an_answer),
        cmocka_unit_test(loopback_and_trusted_proxies_have_as_many_as_they_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
