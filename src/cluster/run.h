/* Runs PostgreSQL's programs as the user a cluster belongs to, tied to this process's life. Private to the cluster. */
#ifndef CLUSTER_RUN_H
#define CLUSTER_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Who the programs run as; PostgreSQL refuses to be root. */
struct runner {
    uid_t uid;
    gid_t gid;
    bool changes; /* we are root and become someone else */
};

struct program {
    const char *const *argv; /* argv[0] is an absolute path; NULL-terminated */
    const char *log;         /* what it says is appended here */
    int in;                  /* its standard input, -1 for nothing */
    int death_signal;        /* what it gets when the calling thread ends */
};

/* Alone in its session, with default signals, a small environment and no descriptor of ours. -1 with errno. */
pid_t program_start(const struct runner *runner, const struct program *program) MUST_CHECK;
/* Waits for the end. ERR_SYSTEM unless it exits with 0, ERR_TIMEOUT (and it is killed) after the deadline. */
enum err program_finish(pid_t pid, int64_t deadline_ns) MUST_CHECK;
/* Reaps it if it has ended by the deadline; *ret_status is waitpid's, untouched when it still runs. */
bool program_ended(pid_t pid, int64_t deadline_ns, int *ret_status);

/* Whether the runner may pass through every directory on the way to the path, and enter the path itself. */
bool runner_can_enter(const struct runner *runner, const char *path);

#endif
