#include "pg/pool.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/queue.h"
#include "base/stop.h"
#include "pg/inside.h"

#define CONNECT_NS (5 * NS_PER_S)
/* Time limit of the first reconnect after a loss; queued jobs wait for it. */
#define RECONNECT_NS (2 * NS_PER_S)
#define START_NS NS_PER_S
#define CHECK_NS NS_PER_S /* how often an idle worker checks its connection */
#define SILENCE_CHECK_MS 100
#define RETRIES_MAX 5
static const struct backoff reconnecting = {100 * NS_PER_MS, 5 * NS_PER_S};
static const struct backoff retrying = {5 * NS_PER_MS, 160 * NS_PER_MS};

struct worker {
    struct pool *pool;
    struct pg *pg;
    pthread_t thread;
    bool counted; /* in state.connected */
};

struct pool {
    struct queue *queue;
    bool quiet;
    const struct pg_pulse *pulse;
    int stop_fd; /* raised by pool_stop() */

    pthread_mutex_t lock; /* guards the members below and pushing: nothing is queued while connected is 0 */
    pthread_cond_t changed;
    struct pool_state state;
    bool outage_logged, first_try_done;
    int64_t stop_ns;  /* INT64_MAX until pool_stop */
    int64_t moved_ns; /* when a job was last taken, or added to an empty queue */

    int started;
    struct worker workers[];
};

static void finish(struct job *job, enum err e)
{
    log_correlate(job->correlation_id);
    job->done(job, e);
    log_correlate(NULL);
}

static bool is_silent(const struct pool *pool)
{
    return pool->pulse && atomic_load(&pool->pulse->silent);
}

static bool is_served(const struct pool *pool)
{
    return pool->state.connected && !is_silent(pool);
}

/* Takes a queued job while no worker is connected, or the database is silent. */
static struct job *take_unserved(struct pool *pool)
{
    void *item = NULL;
    pthread_mutex_lock(&pool->lock);
    if (is_served(pool) || queue_pop(pool->queue, 0, &item))
        item = NULL;
    pthread_mutex_unlock(&pool->lock);
    return item;
}

static void fail_unserved(struct pool *pool)
{
    for (struct job *job; (job = take_unserved(pool));)
        finish(job, ERR_CLOSED);
}

static void mark_connected(struct worker *w)
{
    struct pool *pool = w->pool;
    pthread_mutex_lock(&pool->lock);
    bool first = pool->state.connected == 0 && !w->counted;
    pool->state.connected += !w->counted;
    w->counted = true;
    pool->outage_logged = false;
    pool->first_try_done = true;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    if (first && !pool->quiet)
        log_info("database connected");
}

static void mark_disconnected(struct worker *w, const char *reason)
{
    struct pool *pool = w->pool;
    pthread_mutex_lock(&pool->lock);
    pool->state.connected -= w->counted;
    w->counted = false;
    bool outage = pool->state.connected == 0;
    bool log_it = outage && !pool->quiet && !pool->outage_logged && pool->stop_ns == INT64_MAX;
    pool->outage_logged |= log_it;
    pool->first_try_done = true;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    if (log_it)
        log_warn("database lost", F_STR("reason", reason));
    if (outage)
        fail_unserved(pool);
}

static int64_t stop_ns(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    int64_t at = pool->stop_ns;
    pthread_mutex_unlock(&pool->lock);
    return at;
}

static bool try_connect(struct worker *w, int64_t deadline_ns)
{
    struct why why = {""};
    enum err e = pg_connect(w->pg, deadline_ns, &why);
    if (e) {
        log_debug("database connection failed", F_STR("reason", why.text));
        mark_disconnected(w, why.text);
        return false;
    }
    mark_connected(w);
    return true;
}

/* Tries to reconnect immediately after a loss. The worker counts as connected meanwhile, so that a quick restart of
 * the server fails no requests. A stopping pool reconnects as well, to run the jobs still queued. */
static bool reconnect(struct worker *w)
{
    struct pool *pool = w->pool;
    pthread_mutex_lock(&pool->lock);
    pool->state.reconnects++;
    pthread_mutex_unlock(&pool->lock);
    int64_t end_ns = clock_ns() + RECONNECT_NS, latest_ns = stop_ns(pool);
    pg_give_up_when(w->pg, -1);
    fail_unserved(pool); /* of a silent database */
    bool connected = try_connect(w, end_ns < latest_ns ? end_ns : latest_ns);
    pg_give_up_when(w->pg, pool->stop_fd);
    return connected;
}

/* False once the pool is stopped. */
static bool keep_connecting(struct worker *w)
{
    if (stop_ns(w->pool) != INT64_MAX && queue_depth(w->pool->queue) == 0)
        return false;
    if (w->counted ? reconnect(w) : try_connect(w, clock_ns() + CONNECT_NS))
        return true;
    for (int failures = 1;; failures++) {
        if (stop_wait(w->pool->stop_fd, backoff_jittered_ms(reconnecting, failures)))
            return false;
        while (is_silent(w->pool)) /* the pulse says when it is worth trying */
            if (stop_wait(w->pool->stop_fd, SILENCE_CHECK_MS))
                return false;
        if (try_connect(w, clock_ns() + CONNECT_NS))
            return true;
    }
}

/* Pauses before the next run after a conflict; false when there are no tries or no time left. */
static bool pause_before_retry(struct pool *pool, const struct job *job, int tries)
{
    int pause_ms = backoff_jittered_ms(retrying, tries + 1);
    if (tries == RETRIES_MAX || clock_ns() + pause_ms * NS_PER_MS >= job->deadline_ns)
        return false;
    (void)poll(NULL, 0, pause_ms);
    pthread_mutex_lock(&pool->lock);
    pool->state.retries++;
    pthread_mutex_unlock(&pool->lock);
    return true;
}

static enum err run_with_retries(struct worker *w, struct job *job)
{
    for (int tries = 0;; tries++) {
        log_correlate(job->correlation_id);
        enum err e = job->run(job, w->pg);
        log_correlate(NULL);
        pg_end_transaction(w->pg);
        if (e != ERR_CONFLICT || !pause_before_retry(w->pool, job, tries))
            return e;
        if (!pg_is_alive(w->pg) && !reconnect(w))
            return ERR_CLOSED;
    }
}

/* Requeues the job for another worker; fails it when none is connected. */
static void requeue(struct pool *pool, struct job *job)
{
    pthread_mutex_lock(&pool->lock);
    enum err e = is_served(pool) ? queue_push(pool->queue, job) : ERR_CLOSED;
    pthread_mutex_unlock(&pool->lock);
    if (e)
        finish(job, ERR_CLOSED);
}

/* A job was taken. Returns when the pool stops. */
static int64_t note_taken(struct pool *pool, const struct job *job, int64_t now_ns)
{
    pthread_mutex_lock(&pool->lock);
    pool->moved_ns = now_ns;
    if (now_ns >= job->deadline_ns)
        pool->state.expired_ns = now_ns;
    int64_t at = pool->stop_ns;
    pthread_mutex_unlock(&pool->lock);
    return at;
}

static void run_job(struct worker *w, struct job *job)
{
    struct pool *pool = w->pool;
    int64_t now = clock_ns(), end_ns = note_taken(pool, job, now);
    if (now >= job->deadline_ns || now >= end_ns) {
        finish(job, now >= job->deadline_ns ? ERR_TIMEOUT : ERR_CLOSED);
        return;
    }
    if (is_silent(pool)) {
        finish(job, ERR_CLOSED);
        return;
    }
    if (!pg_is_alive(w->pg) && !reconnect(w)) {
        requeue(pool, job);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->state.busy++;
    pthread_mutex_unlock(&pool->lock);
    enum err e = run_with_retries(w, job);
    pthread_mutex_lock(&pool->lock);
    pool->state.busy--;
    pthread_mutex_unlock(&pool->lock);
    finish(job, e);
}

static void *work(void *context)
{
    struct worker *w = context;
    while (pg_is_alive(w->pg) || keep_connecting(w)) {
        void *item = NULL;
        enum err e = queue_pop(w->pool->queue, clock_ns() + CHECK_NS, &item);
        if (e == ERR_CLOSED)
            break;
        if (!e)
            run_job(w, item);
    }
    mark_disconnected(w, "stopped");
    pg_disconnect(w->pg);
    return NULL;
}

static void free_pool(struct pool *pool, int workers)
{
    for (int i = 0; i < workers; i++)
        pg_free(pool->workers[i].pg);
    stop_free(pool->stop_fd);
    queue_free(pool->queue);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

static bool init_lock(struct pool *pool)
{
    pthread_condattr_t attributes;
    bool made = pthread_condattr_init(&attributes) == 0;
    made = made && pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0;
    made = made && pthread_cond_init(&pool->changed, &attributes) == 0;
    return made && pthread_mutex_init(&pool->lock, NULL) == 0;
}

static struct pool *make_pool(const struct pool_config *config)
{
    struct pool *pool = calloc(1, sizeof *pool + (size_t)config->connections * sizeof pool->workers[0]);
    if (!pool)
        return NULL;
    if (!init_lock(pool)) {
        free(pool);
        return NULL;
    }
    pool->stop_ns = INT64_MAX;
    pool->pulse = config->pulse;
    pool->quiet = config->quiet;
    pool->state.connections = config->connections;
    pool->stop_fd = stop_new();
    pool->queue = queue_new(config->queue_capacity);
    bool complete = pool->queue && pool->stop_fd >= 0;
    int made = 0;
    for (; complete && made < config->connections; made++) {
        struct worker *w = &pool->workers[made];
        w->pool = pool;
        w->pg = pg_new(config->url, config->prepare);
        complete = w->pg != NULL;
        if (complete) {
            pg_give_up_when(w->pg, pool->stop_fd);
            pg_heed_pulse(w->pg, config->pulse);
        }
    }
    if (complete)
        return pool;
    free_pool(pool, made);
    return NULL;
}

static void wait_for_first_try(struct pool *pool)
{
    const struct timespec latest = clock_unshifted(clock_ns() + START_NS);
    pthread_mutex_lock(&pool->lock);
    while (!pool->first_try_done && pthread_cond_timedwait(&pool->changed, &pool->lock, &latest) == 0)
        ;
    pthread_mutex_unlock(&pool->lock);
}

struct pool *pool_start(const struct pool_config *config, struct why *why)
{
    if (pg_check_url(config->url, why))
        return NULL;
    if (config->connections < 1 || config->queue_capacity < 1) {
        (void)why_set(why, ERR_INPUT, "a pool needs at least one connection and one place in its queue");
        return NULL;
    }
    struct pool *pool = make_pool(config);
    if (!pool) {
        (void)why_set(why, ERR_MEMORY, "no memory or descriptors for the database pool");
        return NULL;
    }
    for (; pool->started < config->connections; pool->started++) {
        struct worker *w = &pool->workers[pool->started];
        if (pthread_create(&w->thread, NULL, work, w) != 0) {
            (void)why_set(why, ERR_SYSTEM, "cannot create a thread for the database pool");
            pool_stop(pool, 0);
            return NULL;
        }
    }
    wait_for_first_try(pool);
    return pool;
}

void pool_stop(struct pool *pool, int64_t deadline_ns)
{
    int workers = pool->state.connections;
    pthread_mutex_lock(&pool->lock);
    pool->stop_ns = deadline_ns;
    pthread_mutex_unlock(&pool->lock);
    queue_close(pool->queue);
    stop_raise(pool->stop_fd);
    for (int i = 0; i < pool->started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    free_pool(pool, workers);
}

enum err pool_submit(struct pool *pool, struct job *job)
{
    pthread_mutex_lock(&pool->lock);
    if (queue_depth(pool->queue) == 0)
        pool->moved_ns = clock_ns();
    enum err e = is_served(pool) ? queue_push(pool->queue, job) : ERR_CLOSED;
    pool->state.refused += e == ERR_FULL;
    pthread_mutex_unlock(&pool->lock);
    return e;
}

struct pool_state pool_read_state(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    struct pool_state state = pool->state;
    state.queued = queue_depth(pool->queue);
    state.stalled_ns = state.queued ? clock_ns() - pool->moved_ns : 0;
    pthread_mutex_unlock(&pool->lock);
    return state;
}
