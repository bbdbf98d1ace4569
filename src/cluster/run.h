/* Runs PostgreSQL's programs as the owner of a cluster's files; they end with this process. Private to the cluster. */
#ifndef CLUSTER_RUN_H
#define CLUSTER_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* The user that the programs run as; PostgreSQL refuses to run as root. */
struct runner {
    uid_t uid;
    gid_t gid;
    bool changes; /* we are root and switch to this user */
};

struct program {
    const char *const *argv; /* argv[0] is an absolute path; NULL-terminated */
    const char *log;         /* its output is appended to this file */
    int in;                  /* its standard input, -1 for /dev/null */
    int death_signal;        /* sent to it when the calling thread ends */
};

/* In a new session, with default signal handling, a minimal environment and no other descriptors. -1 with errno. */
pid_t program_start(const struct runner *runner, const struct program *program) MUST_CHECK;
/* Waits until it ends. ERR_SYSTEM unless it exits with 0; kills it at the deadline and returns ERR_TIMEOUT. */
enum err program_finish(pid_t pid, int64_t deadline_ns) MUST_CHECK;
/* Reaps it if it ends by the deadline; *ret_status is waitpid()'s, unchanged when it still runs. */
bool program_ended(pid_t pid, int64_t deadline_ns, int *ret_status);

/* Whether the runner has search permission on every directory of the path. */
bool runner_can_enter(const struct runner *runner, const char *path);

#endif
