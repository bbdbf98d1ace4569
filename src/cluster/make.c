#include "cluster/make.h"

#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/str.h"
#include "cluster/traces.h"

#define INCOMPLETE "half-made."
#define PROGRAM_LIMIT_S 300

static enum err run(const struct cluster_files *f, const char *const *argv, int in, struct why *why)
{
    off_t log_before = traces_log_end(f);
    struct program program = {.argv = argv, .log = f->log, .in = in, .death_signal = SIGKILL};
    pid_t pid = program_start(&f->runner, &program);
    if (pid < 0)
        return files_failed(why, "run", argv[0]);
    enum err e = program_finish(pid, clock_ns() + PROGRAM_LIMIT_S * NS_PER_S);
    if (e == OK)
        return OK;
    char message[256];
    traces_last_message(f, log_before, message, sizeof message);
    return why_set(why, e, "%s %s: %s (see %s)", argv[0], e == ERR_TIMEOUT ? "did not finish" : "failed", message,
                   f->log);
}

/* Kills processes of initdb that may still be writing to the folder before removing it. */
static void remove_tree(const struct cluster_files *f, const char *path)
{
    /* Runs as the runner, so that root's permissions do not apply to the contents. */
    const char *const argv[] = {"/bin/rm", "-rf", "--", path, NULL};
    for (int tries = 0; tries < 100; tries++) {
        if (traces_process_in(path, 0, SIGKILL) == 0 && run(f, argv, -1, NULL) == OK)
            return;
        (void)nanosleep(&(struct timespec){.tv_nsec = 20 * NS_PER_MS}, NULL);
    }
}

/* Removes incomplete clusters of starts that were killed. A failure only wastes disk space. */
static void remove_incomplete(const struct cluster_files *f)
{
    DIR *home = opendir(f->home);
    if (home == NULL)
        return;
    char path[PATH_MAX];
    for (const struct dirent *entry; (entry = readdir(home)) != NULL;)
        if (str_starts(str_of(entry->d_name), STR(INCOMPLETE)) &&
            files_path(NULL, path, sizeof path, "%s/%s", f->home, entry->d_name) == OK)
            remove_tree(f, path);
    (void)closedir(home);
}

static enum err create_database(const struct cluster_files *f, const char *data, struct why *why)
{
    static const char sql[] = "CREATE DATABASE reclaim\n";
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return files_failed(why, "open", "a pipe");
    bool written = write(ends[1], sql, sizeof sql - 1) == (ssize_t)sizeof sql - 1;
    (void)close(ends[1]);
    const char *const argv[] = {f->postgres, "--single", "-D", data, "-c", "exit_on_error=on", "template1", NULL};
    enum err e = written ? run(f, argv, ends[0], why) : files_failed(why, "write to", "a pipe");
    (void)close(ends[0]);
    return e;
}

enum err cluster_make(const struct cluster_files *f, struct why *why)
{
    remove_incomplete(f);
    char made[PATH_MAX], id[37];
    random_uuid(id);
    enum err e = files_path(why, made, sizeof made, "%s/" INCOMPLETE "%s", f->home, id);
    if (e)
        return e;
    locale_t utf8 = newlocale(LC_ALL_MASK, "C.UTF-8", NULL);
    const char *locale = utf8 != NULL ? "--locale=C.UTF-8" : "--locale=C";
    if (utf8 != NULL)
        freelocale(utf8);
    const char *const argv[] = {f->initdb,           "-D", made,   "-U",   "reclaim",
                                "--auth=trust",      "-E", "UTF8", locale, "--data-checksums",
                                "--no-instructions", NULL};
    if ((e = run(f, argv, -1, why)) || (e = create_database(f, made, why)))
        return e;
    if (rename(made, f->data) != 0 || !files_sync(f->home))
        return files_failed(why, "rename", made);
    return OK;
}
