/* Many small questions, one statement: what arrives while a batch is under way makes up the next one.
 *
 * A batch runs as a job of a pool, so that connections, retries and outages are the pool's care. At most `in_flight` are
 * under way at a time; the busier it gets, the larger they grow, and nobody waits for a batch to fill. */
#ifndef PG_BATCH_H
#define PG_BATCH_H

#include "pg/pool.h"

struct batch_item { /* a member of what asks */
    struct batch_item *next;
};

struct batch_config {
    struct pool *pool;
    size_t most;         /* items in one batch */
    size_t capacity;     /* items that may wait; more are refused at once */
    int in_flight;       /* at most 4 */
    int64_t patience_ns; /* for a batch, from its start */
    void *context;
    /* On a worker: asks for all items, which may be asked again after ERR_CONFLICT. */
    enum err (*run)(void *context, struct pg *pg, struct batch_item **items, size_t count);
    /* Once for each item afterwards, with what became of the batch; the item is its owner's again. */
    void (*done)(void *context, struct batch_item *item, enum err e);
};

struct batch;

struct batch *batch_new(const struct batch_config *config) MUST_CHECK;
void batch_free(struct batch *b); /* only when nothing is under way */

/* ERR_FULL when too many wait. Otherwise `done` tells the rest, without a database even before this returns. */
enum err batch_add(struct batch *b, struct batch_item *item) MUST_CHECK;

#endif
