#include "cluster/cluster.h"

#include <errno.h>
#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "cluster/make.h"
#include "cluster/traces.h"

#define OLD_SERVER_LIMIT_S 30
#define ORPHANS_LIMIT_S 5    /* after which processes without a postmaster are ended */
#define READY_LIMIT_S 600    /* recovery after a crash may take long */
#define IMMEDIATE_LIMIT_S 10 /* the postmaster itself kills processes that do not end within 5 */

struct cluster {
    struct cluster_files files;
    pid_t pid; /* 0 while the server is down */
    bool is_new;
    int64_t started_ns, ended_ns;
    off_t log_before; /* where the log ended before this start */
    char url[SOCKETS_PATH_MAX + 64];
};

static void make_url(const char *sockets, char *into, size_t size)
{
    (void)snprintf(into, size, "postgresql://reclaim@/reclaim?host=%s&port=5432", sockets);
}

static void sleep_ms(long ms)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

/* A server whose owner was killed is shutting down, because the kernel sent it SIGINT. A running postmaster is not
 * stopped here: an operator may have started it. */
static enum err wait_for_old_server(const struct cluster_files *f, struct why *why)
{
    int64_t begin = clock_ns();
    for (pid_t pid; (pid = traces_process(f, 0)) != 0; sleep_ms(50)) {
        int64_t waited_ns = clock_ns() - begin;
        if (waited_ns > OLD_SERVER_LIMIT_S * NS_PER_S)
            return why_set(why, ERR_TIMEOUT,
                           "a PostgreSQL server (process %d) still works in %s after %d seconds: wait for it, or stop "
                           "it with kill -INT",
                           (int)pid, f->data, OLD_SERVER_LIMIT_S);
        /* Processes without a postmaster end by themselves, unless they are running a statement. */
        struct postmaster postmaster;
        if (waited_ns > ORPHANS_LIMIT_S * NS_PER_S &&
            (traces_postmaster(f, &postmaster) != OK || postmaster.pid != pid))
            (void)traces_process(f, SIGQUIT);
    }
    traces_clear(f);
    return OK;
}

/* Sets only what this program relies on; all else keeps PostgreSQL's defaults, notably fsync and synchronous_commit.
 * Errors are logged tersely, because details and statements quote rows with personal data. */
static enum err start_server(struct cluster *c, struct why *why)
{
    const struct cluster_files *f = &c->files;
    const char *const argv[] = {f->postgres,
                                "-D",
                                f->data,
                                "-k",
                                f->sockets,
                                "--listen_addresses=",
                                "--port=5432",
                                "--unix_socket_permissions=0700",
                                "--shared_buffers=128MB",
                                "--max_connections=100",
                                "--timezone=UTC",
                                "--log_timezone=UTC",
                                "--logging_collector=off",
                                "--log_destination=stderr",
                                "--log_checkpoints=off",
                                "--log_error_verbosity=terse",
                                "--log_min_error_statement=panic",
                                NULL};
    traces_bound_log(f);
    c->log_before = traces_log_end(f);
    /* SIGINT is a fast shutdown. */
    struct program server = {.argv = argv, .log = f->log, .in = -1, .death_signal = SIGINT};
    c->started_ns = clock_ns();
    pid_t pid = program_start(&f->runner, &server);
    if (pid < 0)
        return files_failed(why, "run", f->postgres);
    c->pid = pid;
    return OK;
}

/* Connects only once postmaster.pid says "ready": each earlier attempt would add a line to the server's log. */
static enum err check_ready(const struct cluster *c, bool *ret_ready, struct why *why)
{
    struct postmaster postmaster;
    *ret_ready = false;
    if (traces_postmaster(&c->files, &postmaster) != OK || postmaster.pid != c->pid || !postmaster.ready)
        return OK;
    PGPing answer = PQping(c->url);
    *ret_ready = answer == PQPING_OK;
    if (answer == PQPING_NO_ATTEMPT)
        return why_set(why, ERR_INPUT, "libpq does not try to connect: check the PG* environment variables");
    return OK;
}

static enum err wait_until_ready(struct cluster *c, struct why *why)
{
    int64_t deadline_ns = clock_ns() + READY_LIMIT_S * NS_PER_S;
    for (;; sleep_ms(20)) {
        bool ready;
        enum err e = check_ready(c, &ready, why);
        if (e || ready)
            return e;
        int status;
        if (program_ended(c->pid, 0, &status)) {
            char message[256];
            traces_last_message(&c->files, c->log_before, message, sizeof message);
            c->pid = 0;
            return why_set(why, ERR_SYSTEM, "PostgreSQL did not start: %s (see %s)", message, c->files.log);
        }
        if (clock_ns() >= deadline_ns)
            return why_set(why, ERR_TIMEOUT, "PostgreSQL was not ready within %d seconds (see %s)", READY_LIMIT_S,
                           c->files.log);
    }
}

static enum err open_cluster(struct cluster *c, const char *data_dir, struct why *why)
{
    enum err e;
    struct cluster_files *f = &c->files;
    if ((e = files_lock(f, data_dir, why)) || (e = files_open_sockets(f, why)))
        return e;
    make_url(f->sockets, c->url, sizeof c->url);
    c->is_new = !files_have_cluster(f);
    if (c->is_new) {
        if ((e = cluster_make(f, why)))
            return e;
        log_info("database cluster made", F_STR("path", f->home));
    }
    if ((e = wait_for_old_server(f, why)) || (e = start_server(c, why)) || (e = wait_until_ready(c, why)))
        return e;
    log_info("database cluster started", F_STR("path", f->home), F_INT("pid", c->pid));
    return OK;
}

static void end_server(struct cluster *c, int64_t deadline_ns)
{
    int status;
    if (c->pid == 0)
        return;
    (void)kill(c->pid, SIGINT);
    if (!program_ended(c->pid, deadline_ns, &status)) {
        (void)kill(c->pid, SIGQUIT);
        if (!program_ended(c->pid, clock_ns() + IMMEDIATE_LIMIT_S * NS_PER_S, &status)) {
            (void)kill(c->pid, SIGKILL);
            (void)program_ended(c->pid, INT64_MAX, &status);
        }
    }
    c->pid = 0;
}

static void close_cluster(struct cluster *c, int64_t deadline_ns)
{
    end_server(c, deadline_ns);
    if (c->files.lock >= 0 && c->files.sockets[0] != '\0' && traces_process(&c->files, 0) == 0) {
        traces_clear(&c->files);
        files_close_sockets(&c->files);
    }
    files_unlock(&c->files);
    free(c);
}

enum err cluster_start(const char *data_dir, struct cluster **ret, struct why *why)
{
    struct cluster *c = calloc(1, sizeof *c);
    if (c == NULL)
        return why_set(why, ERR_MEMORY, "there is no memory for the database cluster");
    enum err e = open_cluster(c, data_dir, why);
    if (e) {
        close_cluster(c, clock_ns() + IMMEDIATE_LIMIT_S * NS_PER_S);
        return e;
    }
    *ret = c;
    return OK;
}

enum err cluster_attach(const char *data_dir, char *url, size_t size, struct why *why)
{
    struct cluster_files *f = calloc(1, sizeof *f);
    if (f == NULL)
        return why_set(why, ERR_MEMORY, "there is no memory for the database cluster");
    struct postmaster postmaster;
    enum err e = files_find(f, data_dir, why);
    if (e == OK && (traces_postmaster(f, &postmaster) != OK || postmaster.stopping || postmaster.sockets[0] == '\0' ||
                    traces_process(f, 0) != postmaster.pid))
        e = why_set(why, ERR_MISSING,
                    "no database runs in %s: start `reclaim serve` there, or set RECLAIM_DATABASE_URL", f->data_dir);
    free(f);
    if (e)
        return e;
    char made[sizeof(((struct cluster *)0)->url)];
    make_url(postmaster.sockets, made, sizeof made);
    return str_copy(str_of(made), url, size);
}

bool cluster_exists(const char *data_dir)
{
    struct cluster_files *f = calloc(1, sizeof *f);
    enum err e = f == NULL ? ERR_MEMORY : files_find(f, data_dir, NULL);
    bool there = e == OK ? files_have_cluster(f) || errno == EACCES : e != ERR_MISSING;
    free(f);
    return there;
}

const char *cluster_url(const struct cluster *c)
{
    return c->url;
}

bool cluster_is_new(const struct cluster *c)
{
    return c->is_new;
}

pid_t cluster_pid(const struct cluster *c)
{
    return c->pid;
}

/* Does not wait until the server is ready: its clients retry. */
static void restart(struct cluster *c)
{
    if (traces_process(&c->files, clock_ns() > c->ended_ns + ORPHANS_LIMIT_S * NS_PER_S ? SIGQUIT : 0) != 0)
        return; /* its shared memory is still in use */
    traces_clear(&c->files);
    struct why why;
    if (start_server(c, &why) == OK)
        log_info("database cluster restarted", F_STR("path", c->files.home), F_INT("pid", c->pid));
    else
        log_error("database cluster restart failed", F_STR("why", why.text));
}

bool cluster_restart_if_ended(struct cluster *c)
{
    int status;
    if (c->pid != 0) {
        if (!program_ended(c->pid, 0, &status)) {
            traces_bound_log(&c->files);
            return false;
        }
        c->pid = 0;
        c->ended_ns = clock_ns();
        char message[256];
        traces_last_message(&c->files, c->log_before, message, sizeof message);
        log_error("database cluster died", F_INT("status", status), F_STR("last_log_line", message));
    }
    if (clock_ns() >= c->started_ns + NS_PER_S)
        restart(c);
    return true;
}

void cluster_stop(struct cluster *c, int64_t deadline_ns)
{
    char home[PATH_MAX];
    (void)snprintf(home, sizeof home, "%s", c->files.home);
    close_cluster(c, deadline_ns);
    log_info("database cluster stopped", F_STR("path", home));
}
