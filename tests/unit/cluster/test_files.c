/* A cluster's files: their contents, paths and owners. */
#include <dirent.h>
#include <fcntl.h>
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

#define HOMES_OF_ROOT "/var/lib/reclaim"

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

static void read_log(const char *home, char *into, size_t size)
{
    char path[PATH_MAX];
    say(path, sizeof path, "%s/server.log", home);
    read_text(path, into, size);
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
    say(path, sizeof path, "%s/postgres/sockets", scene.data_dir);
    assert_int_equal(stat(path, &folder), 0);
    assert_int_equal(folder.st_mode & 0777, 0700);
    say(path, sizeof path, "/proc/%d", (int)cluster_pid(c));
    assert_int_equal(stat(path, &server), 0);
    assert_int_not_equal(server.st_uid, 0);
    assert_int_equal(server.st_uid, folder.st_uid);
    stop(c);
}

static void the_server_inherits_nothing(void **state)
{
    (void)state;
    char path[PATH_MAX], text[8192], link[PATH_MAX];
    say(path, sizeof path, "%s/inherit-me", scene.base);
    int fd = open(path, O_RDWR | O_CREAT, 0600); /* without O_CLOEXEC */
    assert_true(fd > 2);
    setenv("RECLAIM_SECRET_KEY", "not-for-the-server", 1);
    setenv("PGPORT", "6000", 1);
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    signal(SIGXCPU, SIG_IGN); /* PostgreSQL does not handle this signal */

    struct cluster *c = start(scene.data_dir);
    pid_t pid = cluster_pid(c);
    say(path, sizeof path, "/proc/%d/environ", (int)pid);
    int environment = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = read(environment, text, sizeof text);
    close(environment);
    assert_true(len > 0);
    assert_null(memmem(text, (size_t)len, "not-for-the-server", 18));
    say(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
    len = readlink(path, link, sizeof link);
    assert_true(len < 0 || memmem(link, (size_t)len, "inherit-me", 10) == NULL);
    say(path, sizeof path, "/proc/%d/status", (int)pid);
    read_text(path, text, sizeof text);
    const char *ignored = strstr(text, "SigIgn:");
    assert_non_null(ignored);
    assert_int_equal(strtoull(ignored + strlen("SigIgn:"), NULL, 16) >> (SIGXCPU - 1) & 1, 0);
    stop(c);

    signal(SIGXCPU, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    unsetenv("RECLAIM_SECRET_KEY");
    unsetenv("PGPORT");
    close(fd);
    /* Blocked signals do not prevent its fast shutdown. */
    say(path, sizeof path, "%s/postgres", scene.data_dir);
    read_log(path, text, sizeof text);
    assert_non_null(strstr(text, "received fast shutdown request"));
    assert_non_null(strstr(text, "database system is shut down"));
    assert_null(strstr(text, "immediate shutdown request"));
}

static void what_was_stored_is_there_at_the_next_start(void **state)
{
    (void)state;
    char none[8];
    struct cluster *c = start(scene.data_dir);
    ask(cluster_url(c), "CREATE TABLE kept AS SELECT 7 AS n", none, sizeof none);
    stop(c);
    assert_int_equal(servers_below(scene.base), 0);
    c = start(scene.data_dir);
    assert_false(cluster_is_new(c));
    expect_answer(cluster_url(c), "SELECT n FROM kept", "7");
    stop(c);
}

static void a_path_too_long_for_a_socket_is_fine(void **state)
{
    (void)state;
    char long_dir[PATH_MAX], note[PATH_MAX], sockets[128], url[256];
    say(long_dir, sizeof long_dir, "%s/%0120d/data", scene.base, 7);
    say(note, sizeof note, "%s/%0120d", scene.base, 7);
    assert_int_equal(mkdir(note, 0711), 0);
    assert_int_equal(run_program("/bin/cp", "-a", ready_made, long_dir), 0);
    struct owner owner = start_owner(long_dir);
    assert_int_equal(cluster_attach(long_dir, url, sizeof url, NULL), OK);
    expect_answer(url, "SELECT 1", "1");
    say(note, sizeof note, "%s/postgres/sockets.location", long_dir);
    read_text(note, sockets, sizeof sockets);
    sockets[strcspn(sockets, "\n")] = '\0';
    struct stat st;
    assert_int_equal(stat(sockets, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);

    kill_owner(&owner); /* leaves the folder, which the next start reuses */
    struct cluster *c = start(long_dir);
    assert_non_null(strstr(cluster_url(c), sockets));
    expect_answer(cluster_url(c), "SELECT 1", "1");
    stop(c);
    assert_false(exists(sockets));
    assert_false(exists(note));
}

static void a_path_with_odd_characters_and_missing_folders_is_fine(void **state)
{
    (void)state;
    char odd[PATH_MAX];
    say(odd, sizeof odd, "%s/not/yet/there/a, \"b\" & 100%% 'ü'", scene.base);
    struct cluster *c = start(odd);
    expect_answer(cluster_url(c), "SELECT 1", "1");
    stop(c);
}

static void a_start_killed_while_making_the_cluster_leaves_no_half_of_it(void **state)
{
    (void)state;
    char home[PATH_MAX];
    say(home, sizeof home, "%s/postgres", scene.data_dir);
    pid_t pid = fork();
    if (pid == 0) {
        struct cluster *c;
        _exit(cluster_start(scene.data_dir, &c, NULL) != OK);
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

static void the_log_is_bounded(void **state)
{
    (void)state;
    char path[PATH_MAX];
    struct stat st;
    struct cluster *c = start(scene.data_dir);
    say(path, sizeof path, "%s/postgres/server.log", scene.data_dir);
    assert_int_equal(truncate(path, (10 << 20) + 1), 0);
    assert_false(cluster_restart_if_ended(c));
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
        skip(); /* only root runs PostgreSQL as another user */
    char none[8], note[PATH_MAX], home[PATH_MAX], path[PATH_MAX], url[256];
    assert_int_equal(chmod(scene.base, 0700), 0);
    struct cluster *c = start(scene.data_dir);
    say(note, sizeof note, "%s/postgres.location", scene.data_dir);
    read_text(note, home, sizeof home);
    home[strcspn(home, "\n")] = '\0';
    assert_true(str_starts(str_of(home), STR(HOMES_OF_ROOT "/")));
    ask(cluster_url(c), "CREATE TABLE kept AS SELECT 7 AS n", none, sizeof none);
    assert_int_equal(cluster_attach(scene.data_dir, url, sizeof url, NULL), OK);
    assert_string_equal(url, cluster_url(c));
    stop(c);

    assert_int_equal(chmod(scene.base, 0711), 0); /* accessible now, but the cluster stays where it is */
    c = start(scene.data_dir);
    assert_false(cluster_is_new(c));
    expect_answer(cluster_url(c), "SELECT n FROM kept", "7");
    stop(c);
    assert_int_equal(servers_below(home), 0);
    remove_tree(home);
    say(path, sizeof path, "%s/postgres", scene.data_dir);
    assert_false(exists(path));
    (void)rmdir(HOMES_OF_ROOT); /* unless it contains another cluster */
}

static void a_cluster_fallen_out_of_reach_is_not_replaced_by_an_empty_one(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip(); /* only root runs PostgreSQL as another user */
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
        skip(); /* only root runs PostgreSQL as another user */
    assert_int_equal(chown(scene.base, NOBODY, NOBODY), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct cluster *c;
        if (!become_nobody() || cluster_start(scene.data_dir, &c, NULL) != OK)
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
    say(path, sizeof path, "/proc/%d", (int)cluster_pid(c));
    assert_int_equal(stat(path, &server), 0);
    assert_int_equal(server.st_uid, NOBODY);
    stop(c);

    pid = fork(); /* the user can start it again */
    if (pid == 0) {
        if (!become_nobody() || cluster_start(scene.data_dir, &c, NULL) != OK)
            _exit(1);
        stop(c);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static int run_all(const char *name)
{
    const struct CMUnitTest promises[] = {
        PROMISE_AFRESH(a_new_cluster_is_durable_private_and_without_a_port),
        PROMISE(the_server_inherits_nothing),
        PROMISE(what_was_stored_is_there_at_the_next_start),
        PROMISE_AFRESH(a_path_too_long_for_a_socket_is_fine),
        PROMISE_AFRESH(a_path_with_odd_characters_and_missing_folders_is_fine),
        PROMISE_AFRESH(a_start_killed_while_making_the_cluster_leaves_no_half_of_it),
        PROMISE(the_log_is_bounded),
        PROMISE_AFRESH(out_of_reach_for_postgres_the_files_lie_elsewhere),
        PROMISE(a_cluster_fallen_out_of_reach_is_not_replaced_by_an_empty_one),
        PROMISE_AFRESH(root_runs_another_users_cluster_as_that_user),
    };
    return cmocka_run_group_tests_name(name, promises, make_ready, remove_ready);
}

int main(void)
{
    return run_as_everyone(run_all);
}
