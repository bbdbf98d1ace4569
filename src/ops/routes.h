/* The public API: which room answers which path. */
#ifndef OPS_ROUTES_H
#define OPS_ROUTES_H

#include "http/router.h"
#include "ops/settings.h"
#include "recovery/probe.h"

struct routes {
    struct router router;
    struct family families[2];
    struct route routes[2];
    struct probe probe;
};

/* `orphans` must outlive it. */
void routes_init(struct routes *r, const struct settings *s, const struct orphan_statements *orphans);
/* What may change while the program runs. */
void routes_configure(struct routes *r, const struct settings *s);
/* The database is ready. */
void routes_open(struct routes *r, struct pool *pool);

#endif
