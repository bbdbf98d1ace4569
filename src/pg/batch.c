#include "pg/batch.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"

#define IN_FLIGHT_MAX 4

/* A running batch, or a free slot for one. */
struct run {
    struct job job;
    struct batch *batch;
    bool busy;
    size_t count;
    struct batch_item **items;
};

struct batch {
    struct batch_config config;
    pthread_mutex_t lock; /* guards the members below */
    struct batch_item *first, **last;
    size_t waiting;
    struct run runs[IN_FLIGHT_MAX];
};

/* Moves the oldest waiting items into the batch; the lock is held. */
static void take_waiting(struct run *run)
{
    struct batch *b = run->batch;
    run->count = 0;
    while (b->first && run->count < b->config.most) {
        run->items[run->count++] = b->first;
        b->first = b->first->next;
    }
    if (!b->first)
        b->last = &b->first;
    b->waiting -= run->count;
}

static enum err run_batch(struct job *job, struct pg *pg)
{
    struct run *run = OWNER_OF(job, struct run, job);
    struct batch *b = run->batch;
    if (run->count == 0) { /* a retry runs the same items */
        pthread_mutex_lock(&b->lock);
        take_waiting(run);
        pthread_mutex_unlock(&b->lock);
    }
    return run->count ? b->config.run(b->config.context, pg, run->items, run->count) : OK;
}

/* Submits a batch if items are waiting and a slot is free. */
static enum err submit_batch(struct batch *b)
{
    pthread_mutex_lock(&b->lock);
    struct run *run = NULL;
    for (int i = 0; i < b->config.in_flight && !run; i++)
        if (!b->runs[i].busy)
            run = &b->runs[i];
    if (!run || !b->first) {
        pthread_mutex_unlock(&b->lock);
        return OK;
    }
    run->busy = true;
    run->count = 0;
    run->job.deadline_ns = clock_ns() + b->config.limit_ns;
    pthread_mutex_unlock(&b->lock);

    enum err e = pool_submit(b->config.pool, &run->job);
    if (e) {
        pthread_mutex_lock(&b->lock);
        run->busy = false;
        pthread_mutex_unlock(&b->lock);
    }
    return e;
}

/* No batch is running that would take the waiting items: fails all of them, including those added meanwhile. */
static void fail_waiting(struct batch *b, enum err e)
{
    for (;;) {
        pthread_mutex_lock(&b->lock);
        struct batch_item *item = b->first;
        if (item) {
            b->first = item->next;
            b->waiting--;
        }
        if (!b->first)
            b->last = &b->first;
        pthread_mutex_unlock(&b->lock);
        if (!item)
            return;
        b->config.done(b->config.context, item, e);
    }
}

static bool any_running(struct batch *b)
{
    bool busy = false;
    pthread_mutex_lock(&b->lock);
    for (int i = 0; i < b->config.in_flight; i++)
        busy |= b->runs[i].busy;
    pthread_mutex_unlock(&b->lock);
    return busy;
}

static void batch_done(struct job *job, enum err e)
{
    struct run *run = OWNER_OF(job, struct run, job);
    struct batch *b = run->batch;
    if (run->count == 0 && e) { /* never ran: fail the items it would have taken */
        pthread_mutex_lock(&b->lock);
        take_waiting(run);
        pthread_mutex_unlock(&b->lock);
    }
    for (size_t i = 0; i < run->count; i++)
        b->config.done(b->config.context, run->items[i], e);
    pthread_mutex_lock(&b->lock);
    run->busy = false;
    pthread_mutex_unlock(&b->lock);
    if ((e = submit_batch(b)) && !any_running(b))
        fail_waiting(b, e);
}

enum err batch_add(struct batch *b, struct batch_item *item)
{
    pthread_mutex_lock(&b->lock);
    bool full = b->waiting >= b->config.capacity;
    if (!full) {
        item->next = NULL;
        *b->last = item;
        b->last = &item->next;
        b->waiting++;
    }
    pthread_mutex_unlock(&b->lock);
    if (full)
        return ERR_FULL;
    enum err e = submit_batch(b);
    if (e && !any_running(b))
        fail_waiting(b, e); /* including this item */
    return OK;
}

struct batch *batch_new(const struct batch_config *config)
{
    struct batch *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->config = *config;
    b->last = &b->first;
    pthread_mutex_init(&b->lock, NULL);
    for (int i = 0; i < config->in_flight; i++) {
        b->runs[i] = (struct run){.job = {.run = run_batch, .done = batch_done}, .batch = b};
        b->runs[i].items = calloc(config->most, sizeof(struct batch_item *));
        if (!b->runs[i].items) {
            batch_free(b);
            return NULL;
        }
    }
    return b;
}

void batch_free(struct batch *b)
{
    if (!b)
        return;
    for (int i = 0; i < b->config.in_flight; i++)
        free(b->runs[i].items);
    pthread_mutex_destroy(&b->lock);
    free(b);
}
