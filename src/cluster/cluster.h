/* A private PostgreSQL cluster that lives and dies with this process: unix socket only, no TCP port.
 *
 * Lies in <data_dir>/postgres; as root it is run by the user `postgres`, and lies under /var/lib/reclaim when that user
 * cannot reach the data directory (a file in it tells where). One process at a time owns it (flock). The server gets
 * SIGINT when its owner dies in whatever way; a server left from before is waited for, a stale postmaster.pid removed.
 *
 * Start and tend it from the program's first thread, and keep that thread alive: the kernel ties the server's life to
 * the thread that forked it. */
#ifndef CLUSTER_CLUSTER_H
#define CLUSTER_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct cluster;

/* Makes the cluster if there is none, starts it and waits until it answers. ERR_FULL when another process owns it. */
enum err cluster_start(const char *data_dir, struct cluster **ret, struct why *why) MUST_CHECK;
/* For commands beside a running server: the URL of the cluster another process owns; ERR_MISSING when none runs. */
enum err cluster_attach(const char *data_dir, char *url, size_t size, struct why *why) MUST_CHECK;

const char *cluster_url(const struct cluster *c);
bool cluster_is_new(const struct cluster *c); /* made by this start */
pid_t cluster_pid(const struct cluster *c);

/* To be called whenever a child may have ended and at least once a second: reaps the server and starts it again if it
 * died, at most once a second. True when it was down. */
bool cluster_tend(struct cluster *c);
/* A fast shutdown, an immediate one after the deadline; frees c. */
void cluster_stop(struct cluster *c, int64_t deadline_ns);

#endif
