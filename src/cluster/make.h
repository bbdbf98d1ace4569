/* Creates a cluster with a superuser and a database `reclaim`, completely or not at all. Private to the cluster. */
#ifndef CLUSTER_MAKE_H
#define CLUSTER_MAKE_H

#include "cluster/files.h"

enum err cluster_make(const struct cluster_files *f, struct why *why) MUST_CHECK;

#endif
