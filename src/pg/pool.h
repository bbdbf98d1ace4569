/* Worker threads with a connection each behind one bounded queue. What runs on them is a linear function. */
#ifndef PG_POOL_H
#define PG_POOL_H

#include "pg/pg.h"

struct job {
    /* Runs on a worker. ERR_CONFLICT has it run again from the top, up to 5 times with growing pauses, within the
     * deadline: whatever it did must be in a transaction. */
    enum err (*run)(struct job *job, struct pg *pg);
    /* Runs once, after the last try, on the worker; also when the job never ran: ERR_TIMEOUT past its deadline,
     * ERR_CLOSED without a database. The job is the caller's again from here on. */
    void (*done)(struct job *job, enum err e);
    int64_t deadline_ns;
    const char *correlation_id; /* for log lines; NULL is fine */
};

struct pool_config {
    const char *url;
    enum pg_prepare prepare;
    int connections;
    size_t queue_capacity;
};

struct pool;

/* Returns once a worker is connected or failed to be, a second at most. Without a database the workers go on trying. */
struct pool *pool_start(const struct pool_config *config, struct why *why) MUST_CHECK;
/* Runs what is queued up to the deadline, fails the rest, ends the threads. A job under way is waited for: its own
 * deadline bounds that. */
void pool_stop(struct pool *pool, int64_t deadline_ns);

/* ERR_FULL when the queue is, ERR_CLOSED when no worker has a connection: both at once, and `done` is not called. */
enum err pool_submit(struct pool *pool, struct job *job) MUST_CHECK;

struct pool_state {
    int connections, connected, busy;
    size_t queued;
    uint64_t retries, reconnects;
};
struct pool_state pool_look(struct pool *pool);

#endif
