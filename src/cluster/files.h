/* The paths of a cluster's files, their owner, and PostgreSQL's programs. Private to the cluster.
 *
 *   <data_dir>/postgres.lock       locked by the owner; contains its process id
 *   <data_dir>/postgres.location   contains the path of the home when that is not <data_dir>/postgres
 *   <home>/data                    PostgreSQL's data directory; created under another name and renamed when complete
 *   <home>/sockets                 or a folder in /tmp, named in <home>/sockets.location, when the path is too long
 *   <home>/server.log */
#ifndef CLUSTER_FILES_H
#define CLUSTER_FILES_H

#include <limits.h>

#include "cluster/run.h"

/* The path of a socket has at most 107 bytes; "/.s.PGSQL.5432" takes 14 of them. */
#define SOCKETS_PATH_MAX 93

struct cluster_files {
    char data_dir[PATH_MAX]; /* all paths are absolute */
    char home[PATH_MAX];
    char data[PATH_MAX];
    char log[PATH_MAX];
    char sockets[SOCKETS_PATH_MAX + 1];
    char postgres[PATH_MAX], initdb[PATH_MAX];
    struct runner runner;
    int lock; /* -1 when not held */
};

/* Creates the data directory if it is missing, takes the lock, finds home, runner and programs. ERR_FULL when another
 * process holds the lock. Call files_unlock() also after a failure. */
enum err files_lock(struct cluster_files *f, const char *data_dir, struct why *why) MUST_CHECK;
void files_unlock(struct cluster_files *f);
/* Finds the paths and changes nothing: for a cluster that another process owns. */
enum err files_find(struct cluster_files *f, const char *data_dir, struct why *why) MUST_CHECK;

bool files_have_cluster(const struct cluster_files *f);

enum err files_open_sockets(struct cluster_files *f, struct why *why) MUST_CHECK;
/* Removes the folder of the sockets and its note if it is one in /tmp. */
void files_close_sockets(const struct cluster_files *f);

/* ERR_INPUT and a message when the path does not fit. */
enum err files_path(struct why *why, char *into, size_t size, const char *format, ...) PRINTF_LIKE(4, 5) MUST_CHECK;
/* ERR_SYSTEM and "cannot <doing> <path>: <errno>". */
enum err files_failed(struct why *why, const char *doing, const char *path);
/* Makes a rename in this folder durable. */
bool files_sync(const char *folder) MUST_CHECK;

#endif
