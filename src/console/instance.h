/* The row of this instance in reclaim.instances. */
#ifndef CONSOLE_INSTANCE_H
#define CONSOLE_INSTANCE_H

#include <stdatomic.h>

#include "pg/pool.h"

struct instance {
    char id[37], name[160], started_at[28];
    bool has_broker; /* RECLAIM_AMQP_URL is set */
    int64_t refused_last_hour;
    int64_t due_ns;    /* when the row is written again */
    _Atomic bool busy; /* the job below is under way */
    struct job job;
    int64_t lag_ms; /* of the gate; -1: not known */
    bool leads, leaves;
};

/* `address` is that of the public listener. */
void instance_init(struct instance *i, const char *address, bool has_broker);
/* Writes the row; does nothing while the last one is being written. */
void instance_record(struct instance *i, struct pool *pool, int64_t lag_ms, bool leads);
/* Deletes the row, before the pool stops. */
void instance_leave(struct instance *i, struct pool *pool);
/* For the leader: deletes the rows of instances that were not seen for a day. */
enum err instances_prune(struct pg *pg, int64_t deadline_ns) MUST_CHECK;

extern const struct statement instance_write, instance_delete, instances_prune_old;

#endif
