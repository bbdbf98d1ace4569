/* Worker threads with one connection each, which run jobs from one bounded queue. */
#ifndef PG_POOL_H
#define PG_POOL_H

#include "pg/pg.h"

struct job {
    /* Runs on a worker. After ERR_CONFLICT it is run again, up to 5 times with growing pauses, within the deadline:
     * all its changes must be in a transaction. */
    enum err (*run)(struct job *job, struct pg *pg);
    /* Called once, after the last try, on the worker; also when the job never ran: ERR_TIMEOUT past its deadline,
     * ERR_CLOSED without a database. The pool no longer uses the job from then on. */
    void (*done)(struct job *job, enum err e);
    int64_t deadline_ns;
    const char *correlation_id; /* for log lines; may be NULL */
};

struct pool_config {
    const char *url;
    enum pg_prepare prepare;
    int connections;
    size_t queue_capacity;
    bool quiet;                   /* logs neither outages nor their end: another pool of the same database does */
    const struct pg_pulse *pulse; /* may be NULL; while the database is silent, jobs fail instead of waiting */
};

struct pool;

/* Returns when a worker has connected or failed to, after one second at most. Workers retry until they connect. */
struct pool *pool_start(const struct pool_config *config, struct why *why) MUST_CHECK;
/* Runs queued jobs until the deadline, fails the rest and joins the threads. Waits for running jobs, which their own
 * deadlines bound. */
void pool_stop(struct pool *pool, int64_t deadline_ns);

/* ERR_FULL when the queue is full, ERR_CLOSED when no worker is connected or the database is silent; `done` is not called
 * then. */
enum err pool_submit(struct pool *pool, struct job *job) MUST_CHECK;

struct pool_state {
    int connections, connected, busy;
    size_t queued;
    int64_t stalled_ns;                    /* how long the queue has not moved; 0 while it is empty */
    int64_t expired_ns;                    /* when a job was last taken past its deadline; 0: never */
    uint64_t retries, reconnects, refused; /* refused: jobs that found the queue full */
};
struct pool_state pool_read_state(struct pool *pool);

#endif
