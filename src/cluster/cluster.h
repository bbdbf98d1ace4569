/* A private PostgreSQL cluster that runs as long as this process: unix socket only, no TCP port.
 *
 * Its files are in <data_dir>/postgres. Root runs it as the user `postgres`, under /var/lib/reclaim when that user
 * cannot access the data directory (a file there names the place). One process at a time owns it (flock). The server
 * gets SIGINT when its owner ends for any reason; a start waits for a server left from before and removes a stale
 * postmaster.pid.
 *
 * Call cluster_start() and cluster_restart_if_ended() on the program's first thread, which must not end: the kernel sends the
 * server its signal when the thread that forked it ends. */
#ifndef CLUSTER_CLUSTER_H
#define CLUSTER_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct cluster;

/* Creates the cluster if there is none, starts it and waits until it is ready. ERR_FULL if another process owns it. */
enum err cluster_start(const char *data_dir, struct cluster **ret, struct why *why) MUST_CHECK;
/* For commands that run beside a server: the URL of a cluster owned by another process; ERR_MISSING when none runs. */
enum err cluster_attach(const char *data_dir, char *url, size_t size, struct why *why) MUST_CHECK;

/* Whether this data directory has a cluster, running or not; also true when that cannot be seen. */
bool cluster_exists(const char *data_dir);

const char *cluster_url(const struct cluster *c);
bool cluster_is_new(const struct cluster *c); /* created by this start */
pid_t cluster_pid(const struct cluster *c);

/* Called whenever a child may have ended and at least once a second: reaps the server and restarts it if it ended, at
 * most once a second. True when it was down. */
bool cluster_restart_if_ended(struct cluster *c);
/* A fast shutdown, an immediate one after the deadline; frees c. */
void cluster_stop(struct cluster *c, int64_t deadline_ns);

#endif
