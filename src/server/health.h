/* The routes of the ops listener: liveness, readiness, metrics. */
#ifndef SERVER_HEALTH_H
#define SERVER_HEALTH_H

#include "http/router.h"
#include "pg/pool.h"

struct health {
    _Atomic(struct pool *) pool; /* NULL until the database is ready */
    atomic_bool draining;
};

/* GET /livez, /readyz, /metrics. */
struct router health_router(struct health *health);

#endif
