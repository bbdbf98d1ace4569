/* The engine: one thread that runs items, their timers and HTTP requests to other servers, without blocking.
 * Database work runs on the pool, which posts a note when it is done. */
#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/restored.h"
#include "client/client.h"
#include "pg/arrays.h"
#include "pg/listener.h"
#include "work/inside.h"

#define LEASE_NS (25 * NS_PER_S) /* with POLL_NS: claimed within 30 s of a crash */
#define POLL_NS (2 * NS_PER_S)
#define RUN_NS (60 * NS_PER_S)
#define TICK_NS NS_PER_MS
#define JOBS_MAX 4 /* connections of the pool used at once: leaves the others to requests */
#define ITEMS_MAX 16384
#define CONNECTIONS_MAX 256
/* Time allowed after the stop deadline for recording unfinished items. */
#define FINAL_SYNC_NS (2 * NS_PER_S)

METRIC_GAUGE(in_memory, "reclaim_work_in_memory", "Work items in memory.");

/* Items in memory */

size_t engine_item_count(const struct engine *e)
{
    return e->waiting.count + e->running.count + e->ended.count + e->recording.count;
}

static struct work_item **slot_of(struct engine *e, int64_t id)
{
    return &e->slots[(uint64_t)id % WORK_SLOTS];
}

struct work_item *engine_find(struct engine *e, int64_t id)
{
    struct work_item *item = *slot_of(e, id);
    while (item && item->id != id)
        item = item->same_slot;
    return item;
}

static struct item_list *list_of(struct engine *e, const struct work_item *item)
{
    switch ((enum item_state)item->state) {
    case ITEM_WAITING:
        return &e->waiting;
    case ITEM_RUNNING:
        return &e->running;
    case ITEM_ENDED:
        return &e->ended;
    case ITEM_RECORDING:
    case ITEM_PROMISED:
        break;
    }
    return &e->recording;
}

static void set_state(struct work_item *item, enum item_state state)
{
    list_remove(list_of(item->engine, item), item);
    item->state = state;
    list_add(list_of(item->engine, item), item);
}

static void publish_item_count(struct engine *e)
{
    pthread_mutex_lock(&e->lock);
    e->state.in_memory = engine_item_count(e);
    pthread_mutex_unlock(&e->lock);
    gauge_set(&in_memory, (double)engine_item_count(e));
}

void engine_discard(struct engine *e, struct work_item *item)
{
    list_remove(list_of(e, item), item);
    struct work_item **at = slot_of(e, item->id);
    while (*at != item)
        at = &(*at)->same_slot;
    *at = item->same_slot;
    item_free(item);
    publish_item_count(e);
}

/* Running items */

static enum err run_item(struct job *job, struct pg *pg)
{
    struct work_item *item = OWNER_OF(job, struct work_item, job);
    if (work_lease(item, 0) != WORK_MINE)
        return ERR_TIMEOUT;
    return item->kind->run(item, pg, job->deadline_ns);
}

static void item_ran(struct job *job, enum err err)
{
    struct work_item *item = OWNER_OF(job, struct work_item, job);
    item->job_err = err;
    work_post(item->engine, &item->note);
}

static void run_finished(struct work_note *note)
{
    struct work_item *item = OWNER_OF(note, struct work_item, note);
    item->engine->jobs--;
    enum err err = item->job_err;
    work_end(item, !err ? WORK_DONE : err == ERR_INPUT ? WORK_DEAD : WORK_AGAIN, err ? err_name(err) : NULL);
}

static void submit(struct engine *e, struct work_item *item)
{
    item->note.run = run_finished;
    item->job = (struct job){.run = run_item, .done = item_ran, .deadline_ns = clock_ns() + RUN_NS};
    e->jobs++;
    enum err err = pool_submit(e->pool, &item->job);
    if (err) {
        item->job_err = err;
        run_finished(&item->note);
    }
}

static void run_waiting(struct engine *e)
{
    while (e->waiting.first && e->jobs < JOBS_MAX && !e->stopping) {
        struct work_item *item = e->waiting.first;
        if (restored_may_be() && !item->kind->goes_on) {
            work_end(item, WORK_RETURNED, NULL);
            continue;
        }
        set_state(item, ITEM_RUNNING);
        submit(e, item);
    }
}

/* The item is in memory already: it was claimed before its flow handed it over, or claimed again after its lease
 * expired. Keeps the longer lease. */
static bool merge_duplicate(struct engine *e, struct work_item *item)
{
    struct work_item *held = engine_find(e, item->id);
    if (!held)
        return false;
    int64_t until_ns = atomic_load(&item->leased_until_ns);
    if (until_ns > atomic_load(&held->leased_until_ns))
        atomic_store(&held->leased_until_ns, until_ns);
    item_free(item);
    return true;
}

void engine_add(struct engine *e, struct work_item *item)
{
    if (merge_duplicate(e, item))
        return;
    item->same_slot = *slot_of(e, item->id);
    *slot_of(e, item->id) = item;
    item->state = item->kind->run ? ITEM_WAITING : ITEM_RUNNING;
    list_add(list_of(e, item), item);
    publish_item_count(e);
    if (e->stopping || (restored_may_be() && !item->kind->goes_on))
        work_end(item, WORK_RETURNED, NULL);
    else if (item->tries > item->kind->tries_max && item->kind->give_up)
        item->kind->give_up(item);
    else if (item->tries > item->kind->tries_max)
        work_end(item, WORK_DEAD, "the last run was cut off");
    else if (item->kind->run)
        run_waiting(e);
    else
        item->kind->start(item);
}

void work_end(struct work_item *item, enum work_outcome outcome, const char *reason)
{
    if (outcome == WORK_AGAIN && item->tries >= item->kind->tries_max)
        outcome = WORK_DEAD;
    item->outcome = atomic_load(&item->lost) ? WORK_DROPPED : outcome;
    item->reason = reason;
    set_state(item, ITEM_ENDED);
}

/* Notes, timers, hand-over */

static bool post(struct engine *e, struct work_note *note, bool unless_closed)
{
    note->next = NULL;
    pthread_mutex_lock(&e->lock);
    bool taken = !unless_closed || (!e->closed && e->state.in_memory < ITEMS_MAX);
    bool first = !e->notes;
    if (taken) {
        *e->last_note = note;
        e->last_note = &note->next;
    }
    pthread_mutex_unlock(&e->lock);
    if (taken && first)
        client_wake(e->client);
    return taken;
}

void work_post(struct engine *e, struct work_note *note)
{
    (void)post(e, note, false);
}

static void add_handed_over(struct work_note *note)
{
    struct work_item *item = OWNER_OF(note, struct work_item, note);
    engine_add(item->engine, item);
}

void work_kick(struct work_item **item)
{
    struct work_item *mine = *item;
    mine->note.run = add_handed_over;
    if (post(mine->engine, &mine->note, true))
        *item = NULL;
    else
        work_item_cleanup(item);
}

struct client *work_client(struct engine *e)
{
    return e->client;
}

struct pool *work_pool(struct engine *e)
{
    return e->pool;
}

void work_at(struct engine *e, struct work_timer *timer, int64_t at_ns)
{
    wheel_add(&e->timers, &timer->entry, at_ns);
}

void work_cancel(struct engine *e, struct work_timer *timer)
{
    wheel_cancel(&e->timers, &timer->entry);
}

static void run_notes(struct engine *e)
{
    pthread_mutex_lock(&e->lock);
    struct work_note *note = e->notes;
    e->notes = NULL;
    e->last_note = &e->notes;
    pthread_mutex_unlock(&e->lock);
    for (struct work_note *next; note; note = next) {
        next = note->next; /* run() may free the note */
        note->run(note);
    }
}

static void run_timers(struct engine *e)
{
    for (struct wheel_entry *entry; (entry = wheel_expire(&e->timers, clock_ns()));) {
        struct work_timer *timer = OWNER_OF(entry, struct work_timer, entry);
        timer->due(timer);
    }
}

/* On the listener's thread. */
static void on_inserted(void *context, const char *channel UNUSED, const char *payload UNUSED)
{
    struct engine *e = context;
    atomic_store(&e->woken, true);
    client_wake(e->client);
}

static void on_connection(void *context, bool alive)
{
    if (alive) /* what was inserted meanwhile was not heard of */
        on_inserted(context, NULL, NULL);
}

/* The thread */

static void return_waiting(struct engine *e)
{
    while (e->waiting.first)
        work_end(e->waiting.first, WORK_RETURNED, NULL);
}

static void abandon_running(struct engine *e)
{
    e->abandoned = true;
    for (struct work_item *item = e->running.first, *next; item; item = next) {
        next = item->next;
        if (item->kind->abandon)
            item->kind->abandon(item);
    }
}

/* False once all items have ended and are recorded, or cannot be recorded in time. */
static bool must_continue(struct engine *e)
{
    pthread_mutex_lock(&e->lock);
    int64_t stop_ns = e->stop_ns;
    pthread_mutex_unlock(&e->lock);
    if (stop_ns == INT64_MAX)
        return true;
    e->stopping = true;
    return_waiting(e);
    if (clock_ns() >= stop_ns && !e->abandoned)
        abandon_running(e);
    if (e->running.count || e->table_sync.busy)
        return true;
    return engine_item_count(e) && clock_ns() < stop_ns + FINAL_SYNC_NS;
}

static void *run_engine(void *context)
{
    struct engine *e = context;
    while (must_continue(e)) {
        run_notes(e);
        run_timers(e);
        run_waiting(e);
        table_sync_start_if_due(e);
        int64_t next_ns = wheel_next_ns(&e->timers), ledger_ns = table_sync_due_ns(e);
        client_turn(e->client, next_ns < ledger_ns ? next_ns : ledger_ns);
    }
    return NULL;
}

/* Starting and stopping */

static void write_kinds(struct engine *e, const struct work_config *config)
{
    e->kind_names = buf_new(4096);
    e->going_names = buf_new(4096);
    for (size_t i = 0; i < config->kind_count && i < WORK_KINDS_MAX; i++) {
        e->kinds[e->kind_count++] = config->kinds[i];
        array_add_text(&e->kind_names, str_of(config->kinds[i]->name));
        if (config->kinds[i]->goes_on)
            array_add_text(&e->going_names, str_of(config->kinds[i]->name));
    }
    (void)!array_end(&e->kind_names); /* a failure shows in kind_names.failed */
    (void)!array_end(&e->going_names);
}

static struct engine *engine_new(const struct work_config *config)
{
    struct engine *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    struct client_config client = {config->ca_file, CONNECTIONS_MAX};
    pthread_mutex_init(&e->lock, NULL);
    e->pool = config->pool;
    e->record = config->record;
    e->lease_ns = config->lease_ns ? config->lease_ns : LEASE_NS;
    e->poll_ns = config->poll_ns ? config->poll_ns : POLL_NS;
    e->stop_ns = INT64_MAX;
    e->last_note = &e->notes;
    random_bytes(&e->lease_owner, sizeof e->lease_owner);
    e->lease_owner &= INT64_MAX;
    wheel_init(&e->timers, TICK_NS, clock_ns());
    write_kinds(e, config);
    e->client = client_new(&client);
    if (!table_sync_open(e) || !e->client || e->kind_names.failed || e->going_names.failed) {
        work_free(e);
        return NULL;
    }
    return e;
}

static bool start_listening(struct engine *e, const char *direct_url, struct why *why)
{
    static const char *const channels[] = {"reclaim_work", NULL};
    struct listener_config listen = {direct_url, channels, e, on_inserted, on_connection};
    return !direct_url || (e->listener = listener_start(&listen, why));
}

struct engine *work_start(const struct work_config *config, struct why *why)
{
    struct engine *e = engine_new(config);
    (void)why_set(why, ERR_MEMORY, "no memory or no thread for the work queue");
    if (e && start_listening(e, config->direct_url, why) && pthread_create(&e->thread, NULL, run_engine, e) == 0)
        return e;
    if (e && e->listener)
        listener_stop(e->listener);
    work_free(e);
    return NULL;
}

void work_stop(struct engine *e, int64_t deadline_ns)
{
    pthread_mutex_lock(&e->lock);
    e->closed = true;
    e->stop_ns = deadline_ns;
    pthread_mutex_unlock(&e->lock);
    if (e->listener)
        listener_stop(e->listener);
    client_wake(e->client);
    pthread_join(e->thread, NULL);
    run_notes(e); /* items handed over meanwhile */
    for (struct work_item *item; (item = e->ended.first);)
        engine_discard(e, item); /* not recorded: their leases expire */
}

void work_free(struct engine *e)
{
    if (!e)
        return;
    client_free(e->client);
    table_sync_close(e);
    buf_free(&e->kind_names);
    buf_free(&e->going_names);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

struct work_state work_state(struct engine *e)
{
    pthread_mutex_lock(&e->lock);
    struct work_state state = e->state;
    pthread_mutex_unlock(&e->lock);
    return state;
}
