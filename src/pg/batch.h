/* Combines many small queries into one statement: items added while batches are running form the next batch.
 *
 * A batch runs as a job of a pool, which handles connections, retries and outages. At most `in_flight` batches run at a
 * time; they grow with the load, and a batch never waits to be filled. */
#ifndef PG_BATCH_H
#define PG_BATCH_H

#include "pg/pool.h"

struct batch_item { /* embedded in the caller's struct */
    struct batch_item *next;
};

struct batch_config {
    struct pool *pool;
    size_t most;      /* items in one batch */
    size_t capacity;  /* of the waiting list; batch_add() returns ERR_FULL beyond it */
    int in_flight;    /* at most 4 */
    int64_t limit_ns; /* time limit of a batch, from its submission */
    void *context;
    /* Called on a worker for all items of a batch; again with the same items after ERR_CONFLICT. */
    enum err (*run)(void *context, struct pg *pg, struct batch_item **items, size_t count);
    /* Called once for each item afterwards, with the result of its batch; the batch no longer uses the item. */
    void (*done)(void *context, struct batch_item *item, enum err e);
};

struct batch;

struct batch *batch_new(const struct batch_config *config) MUST_CHECK;
void batch_free(struct batch *b); /* only when no batch is running */

/* ERR_FULL when too many wait. Otherwise `done` is called; without a database even before this returns. */
enum err batch_add(struct batch *b, struct batch_item *item) MUST_CHECK;

#endif
