/* The routes of the ops listener: liveness, readiness, metrics. */
#ifndef SERVER_HEALTH_H
#define SERVER_HEALTH_H

#include "http/router.h"
#include "pg/lanes.h"

struct health {
    _Atomic(struct lanes *) lanes; /* NULL until the database is ready */
    const struct pg_pulse *pulse;
    atomic_bool draining;
};

/* GET /livez, /readyz, /metrics. */
struct router health_router(struct health *health);

#endif
