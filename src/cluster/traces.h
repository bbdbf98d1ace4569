/* Inspects a server from outside: its processes, postmaster.pid and log. Private to the cluster. */
#ifndef CLUSTER_TRACES_H
#define CLUSTER_TRACES_H

#include "cluster/files.h"

struct postmaster {
    pid_t pid;
    char sockets[SOCKETS_PATH_MAX + 1];
    bool ready, stopping;
};

/* Reads postmaster.pid, which may be stale; ERR_MISSING when it cannot be read. */
enum err traces_postmaster(const struct cluster_files *f, struct postmaster *ret) MUST_CHECK;
/* A PostgreSQL process of the cluster, preferably the postmaster; 0 when there is none. Sends the signal to each of
 * them unless `signal_number` is 0. */
pid_t traces_process(const struct cluster_files *f, int signal_number);
/* The same for any folder; returns `preferred` if it is one of them. */
pid_t traces_process_in(const char *folder, pid_t preferred, int signal_number);
/* Removes postmaster.pid and socket files; only when traces_process() finds no process. */
void traces_clear(const struct cluster_files *f);

/* Empties the log when it is larger than 10 MB. */
void traces_bound_log(const struct cluster_files *f);
off_t traces_log_end(const struct cluster_files *f);
/* The log's last FATAL line at or after `since`, else its last line; "" when there is none. */
void traces_last_message(const struct cluster_files *f, off_t since, char *into, size_t size);

#endif
