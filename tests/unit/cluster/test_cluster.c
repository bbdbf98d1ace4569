/* The owner of a cluster, and what happens when the owner or the server is killed. */
#include <fcntl.h>
#include <libpq-fe.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/str.h"
#include "scene.h"

/* A connection whose backend runs `sql` until it is terminated. */
static PGconn *keep_busy(const char *url, const char *sql)
{
    PGconn *conn = PQconnectdb(url);
    assert_int_equal(PQstatus(conn), CONNECTION_OK);
    assert_true(PQsendQuery(conn, sql));
    char count[16] = "0";
    while (strcmp(count, "1") != 0)
        ask(url,
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND backend_type "
            "= 'client backend'",
            count, sizeof count);
    return conn;
}

static const char long_statement[] =
    "SELECT count(*) FROM generate_series(1, 2000000000) a, generate_series(1, 1000) b";

static void a_second_owner_is_refused_and_told_what_to_do(void **state)
{
    (void)state;
    struct owner owner = start_owner(scene.data_dir);
    struct cluster *c;
    struct why why;
    char pid[32];
    assert_int_equal(cluster_start(scene.data_dir, &c, &why), ERR_FULL);
    say(pid, sizeof pid, "(id %d)", (int)owner.pid);
    assert_non_null(strstr(why.text, pid));
    assert_non_null(strstr(why.text, "RECLAIM_DATA_DIR"));
    expect_answer(owner.url, "SELECT 1", "1"); /* the first one still works */
    kill_owner(&owner);
    stop(start(scene.data_dir));
}

static void the_server_ends_when_its_owner_is_killed(void **state)
{
    (void)state;
    struct owner owner = start_owner(scene.data_dir);
    assert_true(servers_below(scene.base) > 0);
    kill_owner(&owner);
    for (int tries = 0; tries < 6000 && servers_below(scene.base) > 0; tries++)
        usleep(10000);
    assert_int_equal(servers_below(scene.base), 0);
}

static void a_killed_owner_is_succeeded_at_once(void **state)
{
    (void)state;
    char none[8];
    struct owner owner = start_owner(scene.data_dir);
    ask(owner.url, "CREATE TABLE kept AS SELECT 7 AS n", none, sizeof none);
    PGconn *sleeping = keep_busy(owner.url, "SELECT pg_sleep(3600)");
    kill_owner(&owner);
    struct cluster *c = start(scene.data_dir);
    expect_answer(cluster_url(c), "SELECT n FROM kept", "7");
    stop(c);
    PQfinish(sleeping);
}

static void an_owner_killed_together_with_its_server_is_succeeded(void **state)
{
    (void)state;
    char none[8];
    struct owner owner = start_owner(scene.data_dir);
    ask(owner.url, "CREATE TABLE kept AS SELECT 7 AS n", none, sizeof none);
    PGconn *sleeping = keep_busy(owner.url, "SELECT pg_sleep(3600)");
    kill(owner.server, SIGKILL);
    kill_owner(&owner);
    struct cluster *c = start(scene.data_dir);
    expect_answer(cluster_url(c), "SELECT n FROM kept", "7");
    stop(c);
    PQfinish(sleeping);
}

static void a_backend_that_outlives_everyone_is_ended(void **state)
{
    (void)state;
    struct owner owner = start_owner(scene.data_dir);
    PGconn *busy = keep_busy(owner.url, long_statement);
    kill(owner.server, SIGKILL);
    kill_owner(&owner);
    struct cluster *c = start(scene.data_dir);
    expect_answer(cluster_url(c), "SELECT 1", "1");
    stop(c);
    PQfinish(busy);
}

/* Calls cluster_restart_if_ended() until the server is ready again; returns how often it was down. */
static int tend_until_it_answers(struct cluster *c)
{
    int down = 0;
    do {
        down += cluster_restart_if_ended(c);
        clock_shift(NS_PER_S / 10);
        usleep(10000);
        assert_true(down < 3000);
    } while (PQping(cluster_url(c)) != PQPING_OK);
    return down;
}

static void a_killed_server_is_started_again(void **state)
{
    (void)state;
    char none[8];
    struct cluster *c = start(scene.data_dir);
    ask(cluster_url(c), "CREATE TABLE kept AS SELECT 7 AS n", none, sizeof none);
    assert_false(cluster_restart_if_ended(c));
    pid_t before = cluster_pid(c);
    PGconn *sleeping = keep_busy(cluster_url(c), "SELECT pg_sleep(3600)");
    kill(before, SIGKILL);
    while (PQping(cluster_url(c)) == PQPING_OK)
        usleep(1000);
    assert_true(tend_until_it_answers(c) > 0);
    assert_int_not_equal(cluster_pid(c), before);
    expect_answer(cluster_url(c), "SELECT n FROM kept", "7");
    assert_false(cluster_restart_if_ended(c));
    PQfinish(sleeping);
    stop(c);
}

static void a_backend_that_outlives_its_server_does_not_stop_the_restart(void **state)
{
    (void)state;
    struct cluster *c = start(scene.data_dir);
    PGconn *busy = keep_busy(cluster_url(c), long_statement);
    kill(cluster_pid(c), SIGKILL);
    while (PQping(cluster_url(c)) == PQPING_OK)
        usleep(1000);
    assert_true(tend_until_it_answers(c) > 0);
    PQfinish(busy);
    stop(c);
}

static void a_server_that_keeps_dying_is_started_once_a_second(void **state)
{
    (void)state;
    char path[PATH_MAX];
    struct cluster *c = start(scene.data_dir);
    say(path, sizeof path, "%s/postgres/data/postgresql.auto.conf", scene.data_dir);
    FILE *settings = fopen(path, "a");
    assert_non_null(settings);
    fputs("no_such_setting = 1\n", settings);
    fclose(settings);
    kill(cluster_pid(c), SIGKILL);

    int64_t begin_ns = clock_ns();
    int starts = 0;
    for (pid_t last = cluster_pid(c); starts < 3; usleep(2000)) {
        (void)cluster_restart_if_ended(c);
        if (cluster_pid(c) != 0 && cluster_pid(c) != last)
            starts++;
        last = cluster_pid(c) != 0 ? cluster_pid(c) : last;
    }
    assert_true(clock_ns() - begin_ns >= 2 * NS_PER_S);
    stop(c);
}

static void a_server_that_cannot_start_says_why(void **state)
{
    (void)state;
    char path[PATH_MAX];
    stop(start(scene.data_dir));
    say(path, sizeof path, "%s/postgres/data/postgresql.auto.conf", scene.data_dir);
    FILE *settings = fopen(path, "a");
    assert_non_null(settings);
    fputs("no_such_setting = 1\n", settings);
    fclose(settings);
    struct cluster *c;
    struct why why;
    assert_int_equal(cluster_start(scene.data_dir, &c, &why), ERR_SYSTEM);
    assert_non_null(strstr(why.text, "configuration file"));
    assert_non_null(strstr(why.text, "server.log"));
}

/* Writes `pid` in place of the server's to its lock files, owned by the server's user. */
static void forge_lock_files(pid_t pid)
{
    static const char *const names[] = {"data/postmaster.pid", "sockets/.s.PGSQL.5432.lock"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char path[PATH_MAX];
        struct stat home;
        say(path, sizeof path, "%s/postgres", scene.data_dir);
        assert_int_equal(stat(path, &home), 0);
        say(path, sizeof path, "%s/postgres/%s", scene.data_dir, names[i]);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fprintf(file, "%d\n%s/postgres/data\n1700000000\n5432\n/tmp\n\n  1234567         0\nready   \n", (int)pid,
                scene.data_dir);
        fclose(file);
        assert_int_equal(chown(path, home.st_uid, home.st_gid), 0);
    }
}

static void lock_files_that_name_a_stranger_are_removed(void **state)
{
    (void)state;
    stop(start(scene.data_dir));
    char path[PATH_MAX];
    struct stat home;
    say(path, sizeof path, "%s/postgres", scene.data_dir);
    assert_int_equal(stat(path, &home), 0);
    pid_t other_process = fork();
    if (other_process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (geteuid() == 0 && setuid(home.st_uid) != 0)
            _exit(1);
        for (;;)
            pause();
    }
    forge_lock_files(other_process);
    char url[256];
    assert_int_equal(cluster_attach(scene.data_dir, url, sizeof url, NULL), ERR_MISSING);
    struct cluster *c = start(scene.data_dir);
    expect_answer(cluster_url(c), "SELECT 1", "1");
    assert_int_equal(kill(other_process, SIGKILL), 0); /* it was still running */
    assert_int_equal(waitpid(other_process, NULL, 0), other_process);
    stop(c);

    forge_lock_files(other_process); /* now of a process that has ended */
    stop(start(scene.data_dir));
}

static void others_find_the_cluster_while_it_runs(void **state)
{
    (void)state;
    char url[256], small[8];
    assert_int_equal(cluster_attach(scene.data_dir, url, sizeof url, NULL), ERR_MISSING);
    struct owner owner = start_owner(scene.data_dir);
    assert_int_equal(cluster_attach(scene.data_dir, url, sizeof url, NULL), OK);
    assert_string_equal(url, owner.url);
    expect_answer(url, "SELECT current_database()", "reclaim");
    assert_int_equal(cluster_attach(scene.data_dir, small, sizeof small, NULL), ERR_FULL);
    kill_owner(&owner);
    stop(start(scene.data_dir));
    struct why why;
    assert_int_equal(cluster_attach(scene.data_dir, url, sizeof url, &why), ERR_MISSING);
    assert_non_null(strstr(why.text, scene.data_dir));
}

static void a_stop_past_its_deadline_is_immediate_and_loses_nothing(void **state)
{
    (void)state;
    char none[8];
    struct cluster *c = start(scene.data_dir);
    ask(cluster_url(c), "CREATE TABLE kept AS SELECT 7 AS n", none, sizeof none);
    cluster_stop(c, clock_ns() - NS_PER_S);
    c = start(scene.data_dir);
    expect_answer(cluster_url(c), "SELECT n FROM kept", "7");
    stop(c);
}

static int run_all(const char *name)
{
    const struct CMUnitTest promises[] = {
        PROMISE(a_second_owner_is_refused_and_told_what_to_do),
        PROMISE(the_server_ends_when_its_owner_is_killed),
        PROMISE(a_killed_owner_is_succeeded_at_once),
        PROMISE(an_owner_killed_together_with_its_server_is_succeeded),
        PROMISE(a_backend_that_outlives_everyone_is_ended),
        PROMISE(a_killed_server_is_started_again),
        PROMISE(a_backend_that_outlives_its_server_does_not_stop_the_restart),
        PROMISE(a_server_that_keeps_dying_is_started_once_a_second),
        PROMISE(a_server_that_cannot_start_says_why),
        PROMISE(lock_files_that_name_a_stranger_are_removed),
        PROMISE_AFRESH(others_find_the_cluster_while_it_runs),
        PROMISE(a_stop_past_its_deadline_is_immediate_and_loses_nothing),
    };
    return cmocka_run_group_tests_name(name, promises, make_ready, remove_ready);
}

int main(void)
{
    return run_as_everyone(run_all);
}
