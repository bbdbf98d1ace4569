/* The operator's listener: is it alive, may it get traffic, what does it count? */
#ifndef SERVER_HEALTH_H
#define SERVER_HEALTH_H

#include "http/router.h"
#include "pg/pool.h"

struct health {
    _Atomic(struct pool *) pool; /* NULL while the database is being made ready */
    atomic_bool draining;
};

/* GET /livez, /readyz, /metrics. */
struct router health_router(struct health *health);

#endif
