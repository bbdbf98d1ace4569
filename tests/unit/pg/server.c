#include "server.h"

#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/clock.h"

#define WAIT_NS (60 * NS_PER_S)

/* A directory; the keeper process removes it when this process ends or closes the pipe. */
struct place {
    char dir[64];
    int keeper_fd;
    pid_t keeper;
};

struct server {
    struct place place;
    char url[128];
    char setting[64];
    pid_t pid; /* 0 while down */
};

struct pooler {
    struct place place;
    char url[128];
    pid_t pid;
};

/* fail_msg() does not return, which the linters do not know. */
#define must(held, what)                                                                                               \
    do {                                                                                                               \
        if (!(held)) {                                                                                                 \
            fail_msg("%s", what);                                                                                      \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

static const char *bin(const char *program)
{
    static char path[256];
    glob_t found;
    must(glob("/usr/lib/postgresql/*/bin", 0, NULL, &found) == 0, "no PostgreSQL under /usr/lib/postgresql");
    (void)snprintf(path, sizeof path, "%s/%s", found.gl_pathv[found.gl_pathc - 1], program);
    globfree(&found);
    return path;
}

/* PostgreSQL and PgBouncer refuse to run as root. */
static void become_owner(void)
{
    if (geteuid() != 0)
        return;
    const struct passwd *owner = getpwnam("postgres");
    if (!owner || initgroups("postgres", owner->pw_gid) || setgid(owner->pw_gid) || setuid(owner->pw_uid))
        _exit(126);
}

static pid_t spawn(const char *log, int death_signal, const char *const *argv)
{
    pid_t parent = getpid(), pid = fork();
    must(pid >= 0, "fork");
    if (pid > 0)
        return pid;
    int fd = open(log, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0666);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || dup2(nothing, 0) < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0 || fchmod(fd, 0666) || chdir("/"))
        _exit(125);
    setenv("LC_ALL", "C.UTF-8", 1);
    setpgid(0, 0);
    become_owner();
    prctl(PR_SET_PDEATHSIG, death_signal); /* after becoming the owner, which clears it */
    if (getppid() != parent)
        _exit(124);
    execv(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

static struct place place_new(void)
{
    const char *servers = getenv("RECLAIM_TEST_DIRECTORY");
    struct place p = {.dir = ""};
    int ends[2];
    (void)snprintf(p.dir, sizeof p.dir, "%s/reclaim-test.XXXXXX", servers ? servers : "/tmp");
    must(mkdtemp(p.dir) && pipe2(ends, O_CLOEXEC) == 0, "a directory for a server");
    if (geteuid() == 0) {
        const struct passwd *owner = getpwnam("postgres");
        must(owner && chown(p.dir, owner->pw_uid, owner->pw_gid) == 0, "the user postgres");
    }
    p.keeper_fd = ends[1];
    p.keeper = fork();
    must(p.keeper >= 0, "fork");
    if (p.keeper == 0) {
        char end;
        setpgid(0, 0);
        /* An inherited end of another keeper's pipe would keep that pipe open. */
        if (dup2(ends[0], 0) < 0 || close_range(1, ~0u, 0))
            _exit(1);
        (void)!read(0, &end, 1);
        for (int i = 0; i < 50; i++) { /* until the server has closed its files */
            pid_t rm = fork();
            if (rm == 0)
                execl("/bin/rm", "rm", "-rf", "--", p.dir, (char *)NULL);
            (void)waitpid(rm, NULL, 0);
            (void)poll(NULL, 0, 100);
            if (access(p.dir, F_OK))
                break;
        }
        _exit(0);
    }
    close(ends[0]);
    return p;
}

static void place_free(struct place *p)
{
    close(p->keeper_fd);
    (void)waitpid(p->keeper, NULL, 0);
}

static bool answers(const char *url)
{
    return PQping(url) == PQPING_OK;
}

static void await(const char *url, pid_t pid)
{
    for (int64_t end = clock_ns() + WAIT_NS; clock_ns() < end && waitpid(pid, NULL, WNOHANG) == 0;) {
        if (answers(url))
            return;
        (void)poll(NULL, 0, 20);
    }
    fail_msg("a server did not start");
}

void server_up(struct server *s)
{
    if (s->pid > 0)
        return;
    char log[96], data[96];
    (void)snprintf(log, sizeof log, "%s/log", s->place.dir);
    (void)snprintf(data, sizeof data, "%s/data", s->place.dir);
    const char *argv[] = {bin("postgres"),       "-D", data,        "-k", s->place.dir,           "-c",
                          "listen_addresses=",   "-c", "fsync=off", "-c", "full_page_writes=off", "-c",
                          "shared_buffers=16MB", "-c", s->setting,  NULL};
    s->pid = spawn(log, SIGQUIT, argv);
    await(s->url, s->pid);
}

struct server *server_start(const char *setting)
{
    struct server *s = calloc(1, sizeof *s);
    must(s != NULL, "memory");
    s->place = place_new();
    (void)snprintf(s->url, sizeof s->url, "postgresql://postgres@/postgres?host=%s", s->place.dir);
    (void)snprintf(s->setting, sizeof s->setting, "%s", setting ? setting : "max_connections=100");
    char log[96], data[96];
    (void)snprintf(log, sizeof log, "%s/log", s->place.dir);
    (void)snprintf(data, sizeof data, "%s/data", s->place.dir);
    const char *made = getenv("RECLAIM_TEST_CLUSTER");
    const char *copy[] = {"/bin/cp", "-R", made, data, NULL};
    const char *initdb[] = {bin("initdb"), "-D", data,   "-U",        "postgres",          "-A",
                            "trust",       "-E", "UTF8", "--no-sync", "--no-instructions", NULL};
    int status = -1;
    must(waitpid(spawn(log, SIGKILL, made ? copy : initdb), &status, 0) > 0 && status == 0, "a new cluster");
    server_up(s);
    return s;
}

static void end(pid_t *pid, int sig)
{
    if (*pid > 0) {
        (void)kill(*pid, SIGCONT);
        (void)kill(*pid, sig);
        (void)waitpid(*pid, NULL, 0);
    }
    *pid = 0;
}

void server_down(struct server *s)
{
    end(&s->pid, SIGQUIT);
}

void server_shut(struct server *s)
{
    end(&s->pid, SIGINT);
}

void server_free(struct server *s)
{
    if (!s)
        return;
    server_down(s);
    place_free(&s->place);
    free(s);
}

const char *server_url(const struct server *s)
{
    return s->url;
}

const char *server_dir(const struct server *s)
{
    return s->place.dir;
}

void server_hang(struct server *s, pid_t backend)
{
    must(s->pid > 0 && kill(s->pid, SIGSTOP) == 0 && (!backend || kill(backend, SIGSTOP) == 0), "SIGSTOP");
}

void server_resume(struct server *s, pid_t backend)
{
    must(s->pid > 0 && kill(s->pid, SIGCONT) == 0, "SIGCONT");
    if (backend)
        (void)kill(backend, SIGCONT); /* it may have ended by now */
}

static void free_shared(void);
static struct server *shared;

const char *shared_url(void)
{
    const char *given = getenv("RECLAIM_TEST_DATABASE_URL");
    if (given && *given)
        return given;
    if (!shared) {
        shared = server_start(NULL);
        (void)atexit(free_shared);
    }
    return shared->url;
}

static void free_shared(void)
{
    server_free(shared);
}

struct pooler *pooler_start(const char *url)
{
    PQconninfoOption *options = PQconninfoParse(url, NULL);
    must(options != NULL, "the server's URL");
    const char *host = NULL;
    for (const PQconninfoOption *o = options; o->keyword; o++)
        host = strcmp(o->keyword, "host") == 0 ? o->val : host;
    must(host != NULL, "the server's host");
    struct pooler *p = calloc(1, sizeof *p);
    must(p != NULL, "memory");
    p->place = place_new();
    (void)snprintf(p->url, sizeof p->url, "postgresql://postgres@/postgres?host=%s&port=6432", p->place.dir);
    char settings[96], log[96];
    (void)snprintf(settings, sizeof settings, "%s/pgbouncer.ini", p->place.dir);
    (void)snprintf(log, sizeof log, "%s/log", p->place.dir);
    FILE *f = fopen(settings, "w");
    must(f != NULL, "pgbouncer.ini");
    (void)fprintf(f,
                  "[databases]\n* = host=%s user=postgres\n[pgbouncer]\nlisten_addr =\nlisten_port = 6432\n"
                  "unix_socket_dir = %s\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n",
                  host, p->place.dir);
    must(fchmod(fileno(f), 0644) == 0 && fclose(f) == 0, "pgbouncer.ini");
    PQconninfoFree(options);
    const char *argv[] = {"/usr/sbin/pgbouncer", settings, NULL};
    p->pid = spawn(log, SIGKILL, argv);
    await(p->url, p->pid);
    return p;
}

void pooler_free(struct pooler *p)
{
    if (!p)
        return;
    end(&p->pid, SIGKILL);
    place_free(&p->place);
    free(p);
}

const char *pooler_url(const struct pooler *p)
{
    return p->url;
}

struct pg *must_connect(const char *url, enum pg_prepare prepare)
{
    struct why why = {""};
    struct pg *pg = pg_new(url, prepare);
    must(pg != NULL, "memory");
    if (pg_connect(pg, clock_ns() + WAIT_NS, &why))
        fail_msg("no connection: %s", why.text);
    return pg;
}

void must_run(struct pg *pg, const char *script)
{
    struct why why = {""};
    if (pg_script(pg, script, clock_ns() + WAIT_NS, &why))
        fail_msg("%s", why.text);
}

int64_t number_from(const char *url, const char *sql)
{
    struct pg *pg = must_connect(url, PG_PREPARE_OFF);
    struct statement ask = {"number_from", sql, 0, ""};
    struct pg_call call = {.ask = &ask};
    if (pg_ask(pg, &call, clock_ns() + WAIT_NS))
        fail_msg("SQLSTATE %s: %s", call.sqlstate, sql);
    int64_t n = pg_get_i64(&call, 0, 0);
    pg_free(pg);
    return n;
}
