#include "base/queue.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"

/* Waiting threads wake at this interval to notice that a test shifted the clock; a shorter one would waste CPU time. */
#define CHECK_CLOCK_NS NS_PER_S

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* an item was pushed, or the queue closed */
    size_t capacity, first, count;
    bool closed;
    void *items[]; /* a ring */
};

static bool init_changed(pthread_cond_t *changed)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0)
        return false;
    bool made =
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 && pthread_cond_init(changed, &attributes) == 0;
    (void)pthread_condattr_destroy(&attributes);
    return made;
}

struct queue *queue_new(size_t capacity)
{
    if (capacity > (SIZE_MAX - sizeof(struct queue)) / sizeof(void *))
        return NULL;
    struct queue *q = malloc(sizeof *q + capacity * sizeof q->items[0]);
    if (!q)
        return NULL;
    *q = (struct queue){.capacity = capacity};
    if (!init_changed(&q->changed)) {
        free(q);
        return NULL;
    }
    if (pthread_mutex_init(&q->lock, NULL) != 0) {
        (void)pthread_cond_destroy(&q->changed);
        free(q);
        return NULL;
    }
    return q;
}

void queue_free(struct queue *q)
{
    if (!q)
        return;
    (void)pthread_cond_destroy(&q->changed);
    (void)pthread_mutex_destroy(&q->lock);
    free(q);
}

enum err queue_push(struct queue *q, void *item)
{
    enum err e = OK;
    (void)pthread_mutex_lock(&q->lock);
    if (q->closed) {
        e = ERR_CLOSED;
    } else if (q->count == q->capacity) {
        e = ERR_FULL;
    } else {
        q->items[(q->first + q->count) % q->capacity] = item;
        q->count++;
        (void)pthread_cond_signal(&q->changed);
    }
    (void)pthread_mutex_unlock(&q->lock);
    return e;
}

static bool before(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

/* Waits until there is an item, the queue is closed or the deadline passed. A test may shift the clock meanwhile;
 * shifting it back does not extend the wait. */
static void wait_for_item(struct queue *q, int64_t deadline_ns)
{
    const struct timespec latest = clock_unshifted(deadline_ns);
    for (;;) {
        if (q->count > 0 || q->closed)
            return;
        int64_t now_ns = clock_ns();
        if (now_ns >= deadline_ns)
            return;
        struct timespec check = clock_unshifted(now_ns + CHECK_CLOCK_NS);
        bool last = before(latest, check);
        if (pthread_cond_timedwait(&q->changed, &q->lock, last ? &latest : &check) != 0 && last)
            return;
    }
}

enum err queue_pop(struct queue *q, int64_t deadline_ns, void **ret)
{
    enum err e = OK;
    (void)pthread_mutex_lock(&q->lock);
    wait_for_item(q, deadline_ns);
    if (q->count > 0) {
        *ret = q->items[q->first];
        q->first = (q->first + 1) % q->capacity;
        q->count--;
    } else {
        e = q->closed ? ERR_CLOSED : ERR_TIMEOUT;
    }
    (void)pthread_mutex_unlock(&q->lock);
    return e;
}

void queue_close(struct queue *q)
{
    (void)pthread_mutex_lock(&q->lock);
    q->closed = true;
    (void)pthread_cond_broadcast(&q->changed);
    (void)pthread_mutex_unlock(&q->lock);
}

size_t queue_depth(struct queue *q)
{
    (void)pthread_mutex_lock(&q->lock);
    size_t depth = q->count;
    (void)pthread_mutex_unlock(&q->lock);
    return depth;
}
