/* What a server leaves to be seen: processes, postmaster.pid, its log. Private to the cluster. */
#ifndef CLUSTER_TRACES_H
#define CLUSTER_TRACES_H

#include "cluster/files.h"

struct postmaster {
    pid_t pid;
    char sockets[SOCKETS_PATH_MAX + 1];
    bool ready, stopping;
};

/* What postmaster.pid says, be it true or stale; ERR_MISSING when there is none to be read. */
enum err traces_postmaster(const struct cluster_files *f, struct postmaster *ret) MUST_CHECK;
/* A process of PostgreSQL that works in the cluster, the postmaster if it is among them; 0 when there is none. Unless
 * `signal_number` is 0 each of them gets it. */
pid_t traces_process(const struct cluster_files *f, int signal_number);
/* The same for any folder; `preferred` is the one to name if it is among them. */
pid_t traces_process_in(const char *folder, pid_t preferred, int signal_number);
/* Removes what tells of a server when traces_process() finds none. */
void traces_clear(const struct cluster_files *f);

/* Empties the log once it has passed 10 MB. */
void traces_bound_log(const struct cluster_files *f);
off_t traces_log_end(const struct cluster_files *f);
/* The log's last FATAL line at or after `since`, else its last line; "" when there is none. */
void traces_last_words(const struct cluster_files *f, off_t since, char *into, size_t size);

#endif
