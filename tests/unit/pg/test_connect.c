/* Connecting: the choice of the server, the session's settings and the errors reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "server.h"

#define SOON (clock_ns() + 60 * NS_PER_S)

static struct server *server;

static int start(void **state)
{
    (void)state;
    server = server_start("default_transaction_read_only=off");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    server_free(server);
    return 0;
}

static int raise_server(void **state)
{
    (void)state;
    server_up(server);
    return 0;
}

static enum err try_url(const char *url, int64_t deadline_ns, struct why *why)
{
    struct pg *pg = pg_new(url, PG_PREPARE_AUTO);
    assert_non_null(pg);
    enum err e = pg_connect(pg, deadline_ns, why);
    assert_int_equal(pg_is_up(pg), e == OK);
    pg_free(pg);
    return e;
}

/* Creates a socket that accepts connections and never replies. */
static int silent_host(char dir[64])
{
    (void)snprintf(dir, 64, "%s/silent.XXXXXX", server_dir(server));
    assert_non_null(mkdtemp(dir));
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s/.s.PGSQL.5432", dir);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 8) == 0);
    return fd;
}

static void a_url_that_makes_no_sense_is_refused_without_telling_the_password(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "postgresql://user:secret%zz@host/db",
        "postgres//user:secret@host",
        "postgresql://user:secret@[::1/db",
        "host=a password='secret",
        "host=a password=secret unknown=1",
        "postgresql://user:secret@a,b,c:1,d:2/db?port=1,2",
        "host=a,b hostaddr=127.0.0.1 password=secret",
        "host=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17 password=secret",
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct why why = {""};
        assert_int_equal(try_url(wrong[i], SOON, &why), ERR_INPUT);
        assert_null(strstr(why.text, "secret"));
        assert_true(strlen(why.text) > 10);
    }
    struct why why;
    assert_int_equal(pg_check_url("postgresql://u:p@a:1,b:2/db", &why), OK);
    assert_int_equal(pg_check_url("hostaddr=127.0.0.1,127.0.0.2 port=5432", &why), OK);
    assert_int_equal(pg_check_url("", &why), OK);
}

static void a_refusal_and_a_silence_are_told_apart(void **state)
{
    (void)state;
    char url[256];
    struct why why = {""};
    (void)snprintf(url, sizeof url, "postgresql://postgres:secret@/nowhere?host=%s", server_dir(server));
    assert_int_equal(try_url(url, SOON, &why), ERR_DATABASE);
    assert_non_null(strstr(why.text, "3D000: database \"nowhere\" does not exist"));
    assert_null(strchr(why.text, '\n'));
    assert_null(strstr(why.text, "secret"));

    assert_int_equal(try_url("postgresql://postgres:secret@/postgres?host=/nonexistent", SOON, &why), ERR_CLOSED);
    assert_null(strstr(why.text, "secret"));

    char dir[64];
    int fd = silent_host(dir);
    (void)snprintf(url, sizeof url, "postgresql://postgres@/postgres?host=%s", dir);
    assert_int_equal(try_url(url, clock_ns() + 200 * NS_PER_MS, &why), ERR_CLOSED);
    close(fd);
}

static void a_server_that_starts_or_is_full_may_be_tried_later(void **state)
{
    (void)state;
    struct pg *all[120] = {NULL};
    struct why why = {""};
    enum err e = OK;
    size_t n = 0;
    for (; n < COUNT_OF(all) && !e; n++) {
        all[n] = pg_new(server_url(server), PG_PREPARE_AUTO);
        e = pg_connect(all[n], SOON, &why);
    }
    assert_int_equal(e, ERR_CLOSED);
    assert_non_null(strstr(why.text, "53300"));
    for (size_t i = 0; i < n; i++)
        pg_free(all[i]);
}

static void a_password_that_is_wanted_and_missing_is_a_refusal(void **state)
{
    (void)state;
    struct pg *pg = must_connect(server_url(server), PG_PREPARE_OFF);
    must_run(pg, "CREATE ROLE guarded LOGIN PASSWORD 'right'");
    char hba[128], url[256];
    struct why why = {""};
    (void)snprintf(hba, sizeof hba, "%s/data/pg_hba.conf", server_dir(server));
    FILE *f = fopen(hba, "w");
    assert_non_null(f);
    (void)fputs("local all guarded scram-sha-256\nlocal all all trust\n", f);
    assert_int_equal(fclose(f), 0);
    must_run(pg, "SELECT pg_reload_conf()");
    pg_free(pg);
    (void)snprintf(url, sizeof url, "postgresql://guarded@/postgres?host=%s&passfile=/nonexistent", server_dir(server));
    while (try_url(url, SOON, &why) == OK) /* the postmaster reloads it asynchronously */
        ;
    assert_int_equal(try_url(url, SOON, &why), ERR_DATABASE);
    (void)snprintf(url, sizeof url, "postgresql://guarded:wrong-secret@/postgres?host=%s", server_dir(server));
    assert_int_equal(try_url(url, SOON, &why), ERR_DATABASE);
    assert_non_null(strstr(why.text, "28P01"));
    assert_null(strstr(why.text, "wrong-secret"));
    (void)snprintf(url, sizeof url, "postgresql://guarded:right@/postgres?host=%s", server_dir(server));
    assert_int_equal(try_url(url, SOON, &why), OK);
}

static void of_several_hosts_the_one_that_takes_writes_is_found(void **state)
{
    (void)state;
    struct server *reader = server_start("default_transaction_read_only=on");
    char dir[64], url[256];
    int fd = silent_host(dir);
    struct why why = {""};
    (void)snprintf(url, sizeof url, "host=/nonexistent,%s,%s,%s user=postgres dbname=postgres", dir, server_dir(reader),
                   server_dir(server));
    struct pg *pg = pg_new(url, PG_PREPARE_AUTO);
    if (pg_connect(pg, clock_ns() + 9 * NS_PER_S, &why))
        fail_msg("%s", why.text);
    must_run(pg, "CREATE TABLE written (n int); DROP TABLE written");
    pg_free(pg);

    (void)snprintf(url, sizeof url, "host=%s,%s user=postgres dbname=postgres", server_dir(reader), dir);
    assert_int_equal(try_url(url, clock_ns() + NS_PER_S, &why), ERR_CLOSED);
    (void)snprintf(url, sizeof url, "host=%s,%s user=postgres dbname=postgres target_session_attrs=any",
                   server_dir(reader), server_dir(server));
    pg = must_connect(url, PG_PREPARE_AUTO);
    assert_int_not_equal(pg_script(pg, "CREATE TABLE written (n int)", SOON, &why), OK);
    pg_free(pg);
    close(fd);
    server_free(reader);
}

static void connecting_can_be_given_up(void **state)
{
    (void)state;
    char dir[64], url[128];
    int silent = silent_host(dir), stop_fd = eventfd(1, EFD_CLOEXEC);
    struct why why = {""};
    (void)snprintf(url, sizeof url, "postgresql://postgres@/postgres?host=%s", dir);
    struct pg *pg = pg_new(url, PG_PREPARE_AUTO);
    pg_give_up_when(pg, stop_fd);
    assert_int_equal(pg_connect(pg, INT64_MAX, &why), ERR_CLOSED);
    assert_string_equal(why.text, "connecting to the database was given up");
    pg_free(pg);
    close(stop_fd);
    close(silent);
}

static const struct statement session = {
    "session",
    "SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) AS all FROM pg_settings WHERE name IN"
    " ('application_name', 'client_encoding', 'statement_timeout', 'idle_in_transaction_session_timeout',"
    "  'client_connection_check_interval')",
    0, "all:text"};
static const struct statement named = {"named", "SELECT count(*) AS n FROM pg_prepared_statements WHERE name = 'named'",
                                       0, "n:int8"};

static void a_session_begins_with_its_safety_nets(void **state)
{
    (void)state;
    char url[256];
    (void)snprintf(url, sizeof url, "%s&client_encoding=LATIN1", server_url(server));
    struct pg *pg = must_connect(url, PG_PREPARE_AUTO);
    struct pg_call calls[] = {{.ask = &session}, {.ask = &named}};
    assert_int_equal(pg_trip(pg, calls, 2, SOON), OK);
    assert_string_equal(pg_get(&calls[0], 0, 0).at,
                        "application_name=reclaim client_connection_check_interval=1000 client_encoding=UTF8 "
                        "idle_in_transaction_session_timeout=60000 statement_timeout=30000");
    assert_int_equal(pg_get_i64(&calls[1], 0, 0), 1);
    assert_false(pg_is_pooled(pg));
    pg_free(pg);
}

static void statements_go_unnamed_where_that_is_wished(void **state)
{
    (void)state;
    struct pg *pg = must_connect(server_url(server), PG_PREPARE_OFF);
    struct pg_call calls[] = {{.ask = &named}, {.ask = &named}};
    assert_int_equal(pg_trip(pg, calls, 2, SOON), OK);
    assert_int_equal(pg_get_i64(&calls[1], 0, 0), 0);
    pg_free(pg);
}

static void a_pooler_is_noticed_and_no_session_is_left_behind_it(void **state)
{
    (void)state;
    struct pooler *pooler = pooler_start(server_url(server));
    struct pg *through[4];
    for (size_t i = 0; i < COUNT_OF(through); i++) {
        through[i] = must_connect(pooler_url(pooler), PG_PREPARE_AUTO);
        assert_true(pg_is_pooled(through[i]));
    }
    for (size_t i = 0; i < 40; i++) {
        struct pg_call calls[] = {{.ask = &session}, {.ask = &named}, {.ask = &named}};
        assert_int_equal(pg_trip(through[i % COUNT_OF(through)], calls, 3, SOON), OK);
        assert_non_null(strstr(pg_get(&calls[0], 0, 0).at, "statement_timeout=0"));
        assert_int_equal(pg_get_i64(&calls[2], 0, 0), 0);
    }
    for (size_t i = 0; i < COUNT_OF(through); i++)
        pg_free(through[i]);
    pooler_free(pooler);
}

static void failures_behind_a_pooler_do_not_reach_others(void **state)
{
    (void)state;
    static const struct statement divide = {"divide", "SELECT 1 / $1::int4 AS result", 1, "result:int4"};
    static const struct statement kill = {"kill", "SELECT pg_terminate_backend(pg_backend_pid())", 0, ""};
    struct pooler *pooler = pooler_start(server_url(server));
    struct pg *a = must_connect(pooler_url(pooler), PG_PREPARE_AUTO);
    struct pg *b = must_connect(pooler_url(pooler), PG_PREPARE_AUTO);
    for (int round = 0; round < 20; round++) {
        struct pg_call bad[] = {{.ask = &divide, .args = {pg_i64(1)}}, {.ask = &divide, .args = {pg_i64(0)}}};
        struct pg_call good = {.ask = &divide, .args = {pg_i64(1)}};
        assert_int_equal(pg_trip(a, bad, 2, SOON), ERR_DATABASE);
        assert_int_equal(bad[0].err, OK);
        assert_int_equal(pg_ask(b, &good, SOON), OK);
        if (round % 5 == 4) {
            struct pg_call cut = {.ask = &kill};
            assert_int_equal(pg_ask(a, &cut, SOON), ERR_CLOSED);
            assert_int_equal(pg_connect(a, SOON, NULL), OK);
        }
    }
    pg_free(a);
    pg_free(b);
    pooler_free(pooler);
}

static void a_server_that_hangs_or_restarts_is_told_by_every_trip(void **state)
{
    (void)state;
    static const struct statement pid = {"pid", "SELECT pg_backend_pid() AS pid", 0, "pid:int4"};
    struct pg *pg = must_connect(server_url(server), PG_PREPARE_AUTO);
    struct pg_call call = {.ask = &pid};
    assert_int_equal(pg_ask(pg, &call, SOON), OK);
    pid_t backend = (pid_t)pg_get_i64(&call, 0, 0);
    server_hang(server, backend);
    assert_true(pg_is_alive(pg));
    enum err trip = pg_ask(pg, &call, clock_ns() + 200 * NS_PER_MS);
    enum err again = pg_connect(pg, clock_ns() + 200 * NS_PER_MS, NULL);
    server_resume(server, backend);
    assert_int_equal(trip, ERR_TIMEOUT);
    assert_int_equal(again, ERR_CLOSED);

    void (*const ways[])(struct server *) = {server_down, server_shut};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        assert_int_equal(pg_connect(pg, SOON, NULL), OK);
        ways[i](server);
        assert_int_equal(pg_ask(pg, &call, SOON), ERR_CLOSED);
        assert_false(pg_is_up(pg));
        assert_int_equal(pg_connect(pg, SOON, NULL), ERR_CLOSED);
        server_up(server);
    }
    assert_int_equal(pg_connect(pg, SOON, NULL), OK);
    assert_int_equal(pg_ask(pg, &call, SOON), OK);
    pg_free(pg);
}

#define TEST(name) cmocka_unit_test_setup(name, raise_server)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_url_that_makes_no_sense_is_refused_without_telling_the_password),
        TEST(a_refusal_and_a_silence_are_told_apart),
        TEST(a_server_that_starts_or_is_full_may_be_tried_later),
        TEST(a_password_that_is_wanted_and_missing_is_a_refusal),
        TEST(of_several_hosts_the_one_that_takes_writes_is_found),
        TEST(connecting_can_be_given_up),
        TEST(a_session_begins_with_its_safety_nets),
        TEST(statements_go_unnamed_where_that_is_wished),
        TEST(a_pooler_is_noticed_and_no_session_is_left_behind_it),
        TEST(failures_behind_a_pooler_do_not_reach_others),
        TEST(a_server_that_hangs_or_restarts_is_told_by_every_trip),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
