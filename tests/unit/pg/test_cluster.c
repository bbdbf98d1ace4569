/* The private cluster, with real servers: as the one who runs the test and, when that is root, as an ordinary user too. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libpq-fe.h>
#include <limits.h>
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
#include "base/log.h"
#include "base/str.h"
#include "pg/cluster.h"

#define NOBODY 65534
#define HOMES_OF_ROOT "/var/lib/reclaim"

struct scene {
    char base[64];           /* removed after the test, and with it every data directory */
    char data_dir[PATH_MAX]; /* not made yet */
};

static struct scene scene;
static char ready_made[64]; /* a folder with the data directory of a cluster that most tests begin with a copy of */

static void say(char *into, size_t room, const char *format, ...) PRINTF_LIKE(3, 4);

static void say(char *into, size_t room, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(into, room, format, args);
    va_end(args);
    assert_true(len >= 0 && (size_t)len < room);
}

static int run_program(const char *program, const char *options, const char *path, const char *other_path)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        execl(program, program, options, "--", path, other_path, (char *)NULL);
        _exit(127);
    }
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

static void remove_tree(const char *path)
{
    assert_int_equal(run_program("/bin/rm", "-rf", path, NULL), 0);
}

/* Processes that stand anywhere below the path; each gets the signal unless that is 0. */
static int signal_servers_below(const char *path, int signal_number)
{
    int count = 0;
    DIR *proc = opendir("/proc");
    assert_non_null(proc);
    for (const struct dirent *entry; (entry = readdir(proc)) != NULL;) {
        char link[300], cwd[PATH_MAX];
        int64_t pid;
        if (str_to_i64(str_of(entry->d_name), 1, INT32_MAX, &pid) != OK)
            continue;
        say(link, sizeof(link), "/proc/%s/cwd", entry->d_name);
        ssize_t len = readlink(link, cwd, sizeof(cwd));
        if (len <= 0 || !str_starts((struct str){cwd, (size_t)len}, str_of(path)))
            continue;
        count++;
        if (signal_number != 0)
            kill((pid_t)pid, signal_number);
    }
    closedir(proc);
    return count;
}

static int servers_below(const char *path)
{
    return signal_servers_below(path, 0);
}

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static int names_starting(const char *folder, const char *prefix)
{
    int count = 0;
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return 0;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        count += str_starts(str_of(entry->d_name), str_of(prefix));
    closedir(dir);
    return count;
}

static int begin_with_nothing(void **state)
{
    (void)state;
    say(scene.base, sizeof(scene.base), "/tmp/test-cluster-XXXXXX");
    if (mkdtemp(scene.base) == NULL || chmod(scene.base, 0711) != 0)
        return -1;
    say(scene.data_dir, sizeof(scene.data_dir), "%s/reclaim-data", scene.base);
    return 0;
}

static int begin_with_a_cluster(void **state)
{
    return begin_with_nothing(state) || run_program("/bin/cp", "-a", ready_made, scene.data_dir);
}

static int end(void **state)
{
    (void)state;
    int left = servers_below(scene.base);
    while (signal_servers_below(scene.base, SIGKILL) > 0)
        usleep(10000);
    remove_tree(scene.base);
    if (left > 0)
        print_error("%d server processes were left behind\n", left);
    return left > 0 ? -1 : 0;
}

static struct cluster *start(const char *data_dir)
{
    struct cluster *c = NULL;
    struct why why = {""};
    enum err e = cluster_start(data_dir, &c, &why);
    if (e)
        fail_msg("%s: %s", err_name(e), why.text);
    return c;
}

static void stop(struct cluster *c)
{
    cluster_stop(c, clock_ns() + 60 * NS_PER_S);
}

/* The first value of the answer, copied; the connection is closed again. */
static void ask(const char *url, const char *sql, char *into, size_t room)
{
    PGconn *conn = PQconnectdb(url);
    if (PQstatus(conn) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(conn));
    PGresult *result = PQexec(conn, sql);
    if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
        fail_msg("%s", PQerrorMessage(conn));
    say(into, room, "%s", PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    PQfinish(conn);
}

static void expect_answer(const char *url, const char *sql, const char *expected)
{
    char answer[256];
    ask(url, sql, answer, sizeof(answer));
    assert_string_equal(answer, expected);
}

/* A connection whose backend works on `sql` until it is stopped from outside. */
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
            count, sizeof(count));
    return conn;
}

static const char deep_in_a_statement[] =
    "SELECT count(*) FROM generate_series(1, 2000000000) a, generate_series(1, 1000) b";

/* Another process that owns the cluster. */
struct owner {
    pid_t pid, server;
    char url[256];
};

static struct owner start_owner(const char *data_dir)
{
    struct owner owner = {0};
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    owner.pid = fork();
    if (owner.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct cluster *c;
        if (cluster_start(data_dir, &c, NULL) != OK)
            _exit(1);
        owner.server = cluster_pid(c);
        say(owner.url, sizeof(owner.url), "%s", cluster_url(c));
        if (write(ends[1], &owner, sizeof(owner)) != (ssize_t)sizeof(owner))
            _exit(1);
        for (;;)
            pause();
    }
    pid_t pid = owner.pid;
    close(ends[1]);
    assert_int_equal(read(ends[0], &owner, sizeof(owner)), sizeof(owner));
    owner.pid = pid;
    close(ends[0]);
    return owner;
}

static void kill_owner(const struct owner *owner)
{
    assert_int_equal(kill(owner->pid, SIGKILL), 0);
    assert_int_equal(waitpid(owner->pid, NULL, 0), owner->pid);
}

static void read_text(const char *path, char *into, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, into, room - 1) : -1;
    into[got > 0 ? got : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

static void read_log(const char *home, char *into, size_t room)
{
    char path[PATH_MAX];
    say(path, sizeof(path), "%s/server.log", home);
    read_text(path, into, room);
}

static void a_new_cluster_is_durable_private_and_without_a_port(void **state)
{
    (void)state;
    struct cluster *c = start(scene.data_dir);
    assert_true(cluster_is_new(c));
    const char *url = cluster_url(c);
    expect_answer(url, "SELECT current_user || ' ' || current_database()", "reclaim reclaim");
    expect_answer(url, "SHOW listen_addresses", "");
    expect_answer(url, "SHOW server_encoding", "UTF8");
    expect_answer(url, "SHOW fsync", "on");
    expect_answer(url, "SHOW synchronous_commit", "on");

    struct stat folder, server;
    char path[PATH_MAX];
    assert_int_equal(stat(scene.data_dir, &folder), 0);
    assert_int_equal(folder.st_mode & 0707, 0700);
    say(path, sizeof(path), "%s/postgres/sockets", scene.data_dir);
    assert_int_equal(stat(path, &folder), 0);
    assert_int_equal(folder.st_mode & 0777, 0700);
    say(path, sizeof(path), "/proc/%d", (int)cluster_pid(c));
    assert_int_equal(stat(path, &server), 0);
    assert_int_not_equal(server.st_uid, 0);
    assert_int_equal(server.st_uid, folder.st_uid);
    stop(c);
}

static void the_server_inherits_nothing(void **state)
{
    (void)state;
    char path[PATH_MAX], text[8192], link[PATH_MAX];
    say(path, sizeof(path), "%s/inherit-me", scene.base);
    int fd = open(path, O_RDWR | O_CREAT, 0600); /* without O_CLOEXEC */
    assert_true(fd > 2);
    setenv("RECLAIM_SECRET_KEY", "not-for-the-server", 1);
    setenv("PGPORT", "6000", 1);
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    signal(SIGXCPU, SIG_IGN); /* one that PostgreSQL itself does nothing about */

    struct cluster *c = start(scene.data_dir);
    pid_t pid = cluster_pid(c);
    say(path, sizeof(path), "/proc/%d/environ", (int)pid);
    int environment = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = read(environment, text, sizeof(text));
    close(environment);
    assert_true(len > 0);
    assert_null(memmem(text, (size_t)len, "not-for-the-server", 18));
    say(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
    len = readlink(path, link, sizeof(link));
    assert_true(len < 0 || memmem(link, (size_t)len, "inherit-me", 10) == NULL);
    say(path, sizeof(path), "/proc/%d/status", (int)pid);
    read_text(path, text, sizeof(text));
    const char *ignored = strstr(text, "SigIgn:");
    assert_non_null(ignored);
    assert_int_equal(strtoull(ignored + strlen("SigIgn:"), NULL, 16) >> (SIGXCPU - 1) & 1, 0);
    stop(c);

    signal(SIGXCPU, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    unsetenv("RECLAIM_SECRET_KEY");
    unsetenv("PGPORT");
    close(fd);
    /* Nor do blocked signals keep it from a fast shutdown. */
    say(path, sizeof(path), "%s/postgres", scene.data_dir);
    read_log(path, text, sizeof(text));
    assert_non_null(strstr(text, "received fast shutdown request"));
    assert_non_null(strstr(text, "database system is shut down"));
    assert_null(strstr(text, "immediate shutdown request"));
}

static void what_was_stored_is_there_at_the_next_start(void **state)
{
    (void)state;
    char none[8];
    struct cluster *c = start(scene.data_dir);
    ask(cluster_url(c), "CREATE TABLE kept AS SELECT 7 AS n", none, sizeof(none));
    stop(c);
    assert_int_equal(servers_below(scene.base), 0);
    c = start(scene.data_dir);
    assert_false(cluster_is_new(c));
    expect_answer(cluster_url(c), "SELECT n FROM kept", "7");
    stop(c);
}

static void a_second_owner_is_refused_and_told_what_to_do(void **state)
{
    (void)state;
    struct owner owner = start_owner(scene.data_dir);
    struct cluster *c;
    struct why why;
    char pid[32];
    assert_int_equal(cluster_start(scene.data_dir, &c, &why), ERR_FULL);
    say(pid, sizeof(pid), "(id %d)", (int)owner.pid);
    assert_non_null(strstr(why.text, pid));
    assert_non_null(strstr(why.text, "RECLAIM_DATA_DIR"));
    expect_answer(owner.url, "SELECT 1", "1"); /* the first one took no harm */
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
    ask(owner.url, "CREATE TABLE kept AS SELECT 7 AS n", none, sizeof(none));
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
    ask(owner.url, "CREATE TABLE kept AS SELECT 7 AS n", none, sizeof(none));
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
    PGconn *busy = keep_busy(owner.url, deep_in_a_statement);
    kill(owner.server, SIGKILL);
    kill_owner(&owner);
    struct cluster *c = start(scene.data_dir);
    expect_answer(cluster_url(c), "SELECT 1", "1");
    stop(c);
    PQfinish(busy);
}

/* Tends until the server answers again; how often tending found it down. */
static int tend_until_it_answers(struct cluster *c)
{
    int down = 0;
    do {
        down += cluster_tend(c);
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
    ask(cluster_url(c), "CREATE TABLE kept AS SELECT 7 AS n", none, sizeof(none));
    assert_false(cluster_tend(c));
    pid_t before = cluster_pid(c);
    PGconn *sleeping = keep_busy(cluster_url(c), "SELECT pg_sleep(3600)");
    kill(before, SIGKILL);
    while (PQping(cluster_url(c)) == PQPING_OK)
        usleep(1000);
    assert_true(tend_until_it_answers(c) > 0);
    assert_int_not_equal(cluster_pid(c), before);
    expect_answer(cluster_url(c), "SELECT n FROM kept", "7");
    assert_false(cluster_tend(c));
    PQfinish(sleeping);
    stop(c);
}

static void a_backend_that_outlives_its_server_does_not_stop_the_restart(void **state)
{
    (void)state;
    struct cluster *c = start(scene.data_dir);
    PGconn *busy = keep_busy(cluster_url(c), deep_in_a_statement);
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
    say(path, sizeof(path), "%s/postgres/data/postgresql.auto.conf", scene.data_dir);
    FILE *settings = fopen(path, "a");
    assert_non_null(settings);
    fputs("no_such_setting = 1\n", settings);
    fclose(settings);
    kill(cluster_pid(c), SIGKILL);

    int64_t begin_ns = clock_ns();
    int starts = 0;
    for (pid_t last = cluster_pid(c); starts < 3; usleep(2000)) {
        (void)cluster_tend(c);
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
    say(path, sizeof(path), "%s/postgres/data/postgresql.auto.conf", scene.data_dir);
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

/* Writes `pid` where the server's own would stand, in files of the server's user. */
static void forge_lock_files(pid_t pid)
{
    static const char *const names[] = {"data/postmaster.pid", "sockets/.s.PGSQL.5432.lock"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char path[PATH_MAX];
        struct stat home;
        say(path, sizeof(path), "%s/postgres", scene.data_dir);
        assert_int_equal(stat(path, &home), 0);
        say(path, sizeof(path), "%s/postgres/%s", scene.data_dir, names[i]);
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
    say(path, sizeof(path), "%s/postgres", scene.data_dir);
    assert_int_equal(stat(path, &home), 0);
    pid_t stranger = fork();
    if (stranger == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (geteuid() == 0 && setuid(home.st_uid) != 0)
            _exit(1);
        for (;;)
            pause();
    }
    forge_lock_files(stranger);
    char url[256];
    assert_int_equal(cluster_attach(scene.data_dir, url, sizeof(url), NULL), ERR_MISSING);
    struct cluster *c = start(scene.data_dir);
    expect_answer(cluster_url(c), "SELECT 1", "1");
    assert_int_equal(kill(stranger, SIGKILL), 0); /* it took no harm until now */
    assert_int_equal(waitpid(stranger, NULL, 0), stranger);
    stop(c);

    forge_lock_files(stranger); /* now of a process that is gone */
    stop(start(scene.data_dir));
}

static void others_find_the_cluster_while_it_runs(void **state)
{
    (void)state;
    char url[256], small[8];
    assert_int_equal(cluster_attach(scene.data_dir, url, sizeof(url), NULL), ERR_MISSING);
    struct owner owner = start_owner(scene.data_dir);
    assert_int_equal(cluster_attach(scene.data_dir, url, sizeof(url), NULL), OK);
    assert_string_equal(url, owner.url);
    expect_answer(url, "SELECT current_database()", "reclaim");
    assert_int_equal(cluster_attach(scene.data_dir, small, sizeof(small), NULL), ERR_FULL);
    kill_owner(&owner);
    stop(start(scene.data_dir));
    struct why why;
    assert_int_equal(cluster_attach(scene.data_dir, url, sizeof(url), &why), ERR_MISSING);
    assert_non_null(strstr(why.text, scene.data_dir));
}

static void a_path_too_long_for_a_socket_is_fine(void **state)
{
    (void)state;
    char long_dir[PATH_MAX], note[PATH_MAX], sockets[128], url[256];
    say(long_dir, sizeof(long_dir), "%s/%0120d/data", scene.base, 7);
    say(note, sizeof(note), "%s/%0120d", scene.base, 7);
    assert_int_equal(mkdir(note, 0711), 0);
    assert_int_equal(run_program("/bin/cp", "-a", ready_made, long_dir), 0);
    struct owner owner = start_owner(long_dir);
    assert_int_equal(cluster_attach(long_dir, url, sizeof(url), NULL), OK);
    expect_answer(url, "SELECT 1", "1");
    say(note, sizeof(note), "%s/postgres/sockets.location", long_dir);
    read_text(note, sockets, sizeof(sockets));
    sockets[strcspn(sockets, "\n")] = '\0';
    struct stat st;
    assert_int_equal(stat(sockets, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);

    kill_owner(&owner); /* leaves the folder, which the next start takes over */
    struct cluster *c = start(long_dir);
    assert_non_null(strstr(cluster_url(c), sockets));
    expect_answer(cluster_url(c), "SELECT 1", "1");
    stop(c);
    assert_false(exists(sockets));
    assert_false(exists(note));
}

static void a_path_with_odd_characters_is_fine(void **state)
{
    (void)state;
    char odd[PATH_MAX];
    say(odd, sizeof(odd), "%s/a, \"b\" & 100%% 'ü'", scene.base);
    struct cluster *c = start(odd);
    expect_answer(cluster_url(c), "SELECT 1", "1");
    stop(c);
}

static void a_start_killed_while_making_the_cluster_leaves_no_half_of_it(void **state)
{
    (void)state;
    char home[PATH_MAX];
    say(home, sizeof(home), "%s/postgres", scene.data_dir);
    pid_t pid = fork();
    if (pid == 0) {
        struct cluster *c;
        _exit(cluster_start(scene.data_dir, &c, NULL));
    }
    while (names_starting(home, "half-made.") == 0)
        usleep(1000);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    struct cluster *c = start(scene.data_dir);
    assert_true(cluster_is_new(c));
    assert_int_equal(names_starting(home, "half-made."), 0);
    expect_answer(cluster_url(c), "SELECT current_database()", "reclaim");
    stop(c);
}

static void a_stop_past_its_deadline_is_immediate_and_loses_nothing(void **state)
{
    (void)state;
    char none[8];
    struct cluster *c = start(scene.data_dir);
    ask(cluster_url(c), "CREATE TABLE kept AS SELECT 7 AS n", none, sizeof(none));
    cluster_stop(c, clock_ns() - NS_PER_S);
    c = start(scene.data_dir);
    expect_answer(cluster_url(c), "SELECT n FROM kept", "7");
    stop(c);
}

static void the_log_is_bounded(void **state)
{
    (void)state;
    char path[PATH_MAX];
    struct stat st;
    struct cluster *c = start(scene.data_dir);
    say(path, sizeof(path), "%s/postgres/server.log", scene.data_dir);
    assert_int_equal(truncate(path, (10 << 20) + 1), 0);
    assert_false(cluster_tend(c));
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size < 4096);
    stop(c);
    assert_int_equal(truncate(path, (10 << 20) + 1), 0);
    stop(start(scene.data_dir));
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size < 4096);
}

static void out_of_reach_for_postgres_the_files_lie_elsewhere(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    char none[8], note[PATH_MAX], home[PATH_MAX], path[PATH_MAX], url[256];
    bool was_there = exists(HOMES_OF_ROOT);
    assert_int_equal(chmod(scene.base, 0700), 0);
    struct cluster *c = start(scene.data_dir);
    say(note, sizeof(note), "%s/postgres.location", scene.data_dir);
    read_text(note, home, sizeof(home));
    home[strcspn(home, "\n")] = '\0';
    assert_true(str_starts(str_of(home), STR(HOMES_OF_ROOT "/")));
    ask(cluster_url(c), "CREATE TABLE kept AS SELECT 7 AS n", none, sizeof(none));
    assert_int_equal(cluster_attach(scene.data_dir, url, sizeof(url), NULL), OK);
    assert_string_equal(url, cluster_url(c));
    stop(c);

    assert_int_equal(chmod(scene.base, 0711), 0); /* within reach now, but there it lies */
    c = start(scene.data_dir);
    assert_false(cluster_is_new(c));
    expect_answer(cluster_url(c), "SELECT n FROM kept", "7");
    stop(c);
    assert_int_equal(servers_below(home), 0);
    remove_tree(home);
    say(path, sizeof(path), "%s/postgres", scene.data_dir);
    assert_false(exists(path));
    if (!was_there)
        (void)rmdir(HOMES_OF_ROOT);
}

static void a_cluster_fallen_out_of_reach_is_not_replaced_by_an_empty_one(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    stop(start(scene.data_dir));
    assert_int_equal(chmod(scene.base, 0700), 0);
    struct cluster *c;
    struct why why;
    assert_int_equal(cluster_start(scene.data_dir, &c, &why), ERR_INPUT);
    assert_non_null(strstr(why.text, "no longer reach"));
}

static void root_runs_another_users_cluster_as_that_user(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(chown(scene.base, NOBODY, NOBODY), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct cluster *c;
        if (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0 ||
            cluster_start(scene.data_dir, &c, NULL) != OK)
            _exit(1);
        stop(c);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);

    struct cluster *c = start(scene.data_dir);
    char path[PATH_MAX];
    struct stat server;
    say(path, sizeof(path), "/proc/%d", (int)cluster_pid(c));
    assert_int_equal(stat(path, &server), 0);
    assert_int_equal(server.st_uid, NOBODY);
    stop(c);

    pid = fork(); /* and the user can have it back */
    if (pid == 0) {
        if (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0 ||
            cluster_start(scene.data_dir, &c, NULL) != OK)
            _exit(1);
        stop(c);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static int make_ready(void **state)
{
    if (begin_with_nothing(state) != 0)
        return -1;
    struct cluster *c;
    if (cluster_start(scene.data_dir, &c, NULL) != OK)
        return -1;
    stop(c);
    say(ready_made, sizeof(ready_made), "%s-ready", scene.base);
    return rename(scene.data_dir, ready_made) || rmdir(scene.base);
}

static int remove_ready(void **state)
{
    (void)state;
    remove_tree(ready_made);
    return 0;
}

static int run_all(const char *as)
{
#define PROMISE(name) cmocka_unit_test_setup_teardown(name, begin_with_a_cluster, end)
#define PROMISE_AFRESH(name) cmocka_unit_test_setup_teardown(name, begin_with_nothing, end)
    const struct CMUnitTest promises[] = {
        PROMISE_AFRESH(a_new_cluster_is_durable_private_and_without_a_port),
        PROMISE(the_server_inherits_nothing),
        PROMISE(what_was_stored_is_there_at_the_next_start),
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
        PROMISE_AFRESH(a_path_too_long_for_a_socket_is_fine),
        PROMISE_AFRESH(a_path_with_odd_characters_is_fine),
        PROMISE_AFRESH(a_start_killed_while_making_the_cluster_leaves_no_half_of_it),
        PROMISE(a_stop_past_its_deadline_is_immediate_and_loses_nothing),
        PROMISE(the_log_is_bounded),
        PROMISE_AFRESH(out_of_reach_for_postgres_the_files_lie_elsewhere),
        PROMISE(a_cluster_fallen_out_of_reach_is_not_replaced_by_an_empty_one),
        PROMISE_AFRESH(root_runs_another_users_cluster_as_that_user),
    };
    return cmocka_run_group_tests_name(as, promises, make_ready, remove_ready);
}

int main(void)
{
    log_to_fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
    umask(022);
    if (geteuid() != 0)
        return run_all("cluster");
    int failed = run_all("cluster, as root");
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
            _exit(1);
        exit(run_all("cluster, as an ordinary user"));
    }
    int status = 1;
    (void)waitpid(pid, &status, 0);
    return failed != 0 || status != 0;
}
