/* The database connections of an instance, split into lanes. Requests of one kind wait in a queue of their own for
 * connections of their own: whatever anonymous callers send, accounts and the gate are served.
 *
 *   gate        who a caller is; reads only, takes no row lock
 *   limits      rate limits, one batch at a time
 *   account     what customers and the product's services ask: sign-in, freezes, calls, charges
 *   anonymous   what anyone may ask: probes, clean-ups, sign-in codes
 *   background  administrators, and the work queue */
#ifndef PG_LANES_H
#define PG_LANES_H

#include "pg/pool.h"

enum lane { LANE_GATE, LANE_LIMITS, LANE_ACCOUNT, LANE_ANONYMOUS, LANE_BACKGROUND, LANE_COUNT };

struct lanes_config {
    const char *url;
    enum pg_prepare prepare;
    int connections;              /* of all lanes; each has at least one */
    size_t queue_capacity;        /* of each */
    const struct pg_pulse *pulse; /* may be NULL */
};

struct lanes;

/* As pool_start() and pool_stop(). */
struct lanes *lanes_start(const struct lanes_config *config, struct why *why) MUST_CHECK;
void lanes_stop(struct lanes *lanes, int64_t deadline_ns);

/* NULL without lanes: the database is not ready. */
struct pool *lanes_pool(const struct lanes *lanes, enum lane lane);

/* How many of `connections` a lane gets. */
int lanes_share(int connections, enum lane lane);

/* The sum over all lanes. */
struct pool_state lanes_read_state(struct lanes *lanes);
/* Whether jobs of this lane wait and none was begun for half a second, or one has waited past its deadline lately. */
bool lanes_is_stalled(struct lanes *lanes, enum lane lane);
/* Sets the metrics of each lane and logs those that have stalled; called every second. */
void lanes_watch(struct lanes *lanes);

#endif
