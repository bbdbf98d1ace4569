#include "scene.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
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
#include "base/log.h"
#include "base/str.h"

struct scene scene;
char ready_made[64];

void say(char *into, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(into, size, format, args);
    va_end(args);
    assert_true(len >= 0 && (size_t)len < size);
}

int run_program(const char *program, const char *options, const char *path, const char *other_path)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        execl(program, program, options, "--", path, other_path, (char *)NULL);
        _exit(127);
    }
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

void remove_tree(const char *path)
{
    assert_int_equal(run_program("/bin/rm", "-rf", path, NULL), 0);
}

/* Counts the processes whose working directory is below the path; sends each the signal unless it is 0. */
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
        say(link, sizeof link, "/proc/%s/cwd", entry->d_name);
        ssize_t len = readlink(link, cwd, sizeof cwd);
        if (len <= 0 || !str_starts((struct str){cwd, (size_t)len}, str_of(path)))
            continue;
        count++;
        if (signal_number != 0)
            kill((pid_t)pid, signal_number);
    }
    closedir(proc);
    return count;
}

int servers_below(const char *path)
{
    return signal_servers_below(path, 0);
}

int scene_begin_bare(void **state)
{
    (void)state;
    const char *servers = getenv("RECLAIM_TEST_DIRECTORY");
    say(scene.base, sizeof scene.base, "%s/test-cluster-XXXXXX", servers ? servers : "/tmp");
    if (mkdtemp(scene.base) == NULL || chmod(scene.base, 0711) != 0)
        return -1;
    say(scene.data_dir, sizeof scene.data_dir, "%s/reclaim-data", scene.base);
    return 0;
}

int scene_begin(void **state)
{
    return scene_begin_bare(state) || run_program("/bin/cp", "-a", ready_made, scene.data_dir);
}

int scene_end(void **state)
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

struct cluster *start(const char *data_dir)
{
    struct cluster *c = NULL;
    struct why why = {""};
    enum err e = cluster_start(data_dir, &c, &why);
    if (e)
        fail_msg("%s: %s", err_name(e), why.text);
    return c;
}

void stop(struct cluster *c)
{
    cluster_stop(c, clock_ns() + 60 * NS_PER_S);
}

/* Copies the first value of the result and closes the connection. */
void ask(const char *url, const char *sql, char *into, size_t size)
{
    PGconn *conn = PQconnectdb(url);
    if (PQstatus(conn) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(conn));
    PGresult *result = PQexec(conn, sql);
    if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
        fail_msg("%s", PQerrorMessage(conn));
    say(into, size, "%s", PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    PQfinish(conn);
}

void expect_answer(const char *url, const char *sql, const char *expected)
{
    char answer[256];
    ask(url, sql, answer, sizeof answer);
    assert_string_equal(answer, expected);
}

struct owner start_owner(const char *data_dir)
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
        say(owner.url, sizeof owner.url, "%s", cluster_url(c));
        if (write(ends[1], &owner, sizeof owner) != (ssize_t)sizeof owner)
            _exit(1);
        for (;;)
            pause();
    }
    pid_t pid = owner.pid;
    close(ends[1]);
    assert_int_equal(read(ends[0], &owner, sizeof owner), sizeof owner);
    owner.pid = pid;
    close(ends[0]);
    return owner;
}

void kill_owner(const struct owner *owner)
{
    assert_int_equal(kill(owner->pid, SIGKILL), 0);
    assert_int_equal(waitpid(owner->pid, NULL, 0), owner->pid);
}

void read_text(const char *path, char *into, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, into, size - 1) : -1;
    into[got > 0 ? got : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

int make_ready(void **state)
{
    if (scene_begin_bare(state) != 0)
        return -1;
    struct cluster *c;
    if (cluster_start(scene.data_dir, &c, NULL) != OK)
        return -1;
    stop(c);
    say(ready_made, sizeof ready_made, "%s-ready", scene.base);
    return rename(scene.data_dir, ready_made) || rmdir(scene.base);
}

int remove_ready(void **state)
{
    (void)state;
    remove_tree(ready_made);
    return 0;
}

bool become_nobody(void)
{
    return setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0;
}

int run_as_everyone(int (*run)(const char *name))
{
    log_to_fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
    umask(022);
    if (geteuid() != 0)
        return run("as an ordinary user");
    int failed = run("as root");
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (!become_nobody())
            _exit(1);
        exit(run("as an ordinary user"));
    }
    int status = 1;
    (void)waitpid(pid, &status, 0);
    return failed != 0 || status != 0;
}
