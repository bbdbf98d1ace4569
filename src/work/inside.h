/* Declarations shared by the files of this folder. Private to it. */
#ifndef WORK_INSIDE_H
#define WORK_INSIDE_H

#include <pthread.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "work/work.h"

#define WORK_KINDS_MAX 16
#define WORK_SLOTS 4096

enum item_state {
    ITEM_PROMISED, /* still owned by the flow */
    ITEM_WAITING,  /* for a connection of the pool */
    ITEM_RUNNING,
    ITEM_ENDED,     /* its outcome is not in the table yet */
    ITEM_RECORDING, /* its outcome is being written */
};

struct item_list {
    struct work_item *first, *last;
    size_t count;
};

void list_add(struct item_list *list, struct work_item *item);
void list_remove(struct item_list *list, struct work_item *item);

/* Ids of items done; of other ended items the id, new state, pause and error at the same index; ids to renew. */
enum sync_text { DONE, IDS, STATES, PAUSES, ERRORS, RENEWALS, SYNC_TEXTS };

/* One trip to the database that records outcomes, renews leases and claims items; at most one at a time. While busy, a
 * worker uses its texts and results, otherwise the engine's thread. */
struct table_sync {
    struct job job;
    struct work_note note;
    struct engine *engine;
    bool busy;
    enum err err;
    int64_t next_ns;   /* when it is due again; sooner if an item has ended */
    int64_t claim_ns;  /* when to claim items again */
    int64_t census_ns; /* when to count them again */

    struct buf texts[SYNC_TEXTS]; /* array literals */
    struct buf results;           /* a JSON array, for engine.record */
    struct json_writer results_json;
    size_t result_count;
    size_t done_count, changed_count, renewal_count, claim_limit;
    bool census;

    int64_t leased_from_ns;   /* taken before the trip */
    struct item_list claimed; /* new items */
    int64_t *renewed;         /* ids */
    size_t renewed_count;
};

struct engine {
    struct pool *pool;
    struct client *client;
    const struct work_kind *kinds[WORK_KINDS_MAX];
    size_t kind_count;
    struct buf kind_names, going_names; /* array literals; the latter of the kinds that go on after a restore */
    int64_t lease_ns, poll_ns;
    int64_t lease_owner; /* of this engine's leases (leased_by): a random number */
    pthread_t thread;
    const struct statement *record;
    struct listener *listener; /* NULL without a direct URL */
    atomic_bool woken;         /* items were inserted that nobody has claimed */

    pthread_mutex_t lock; /* for the members up to `state` */
    struct work_note *notes, **last_note;
    bool closed; /* no more items are handed over */
    int64_t stop_ns;
    struct work_state state;

    /* Used by the thread only: */
    struct wheel timers;
    struct item_list waiting, running, ended, recording;
    struct work_item *slots[WORK_SLOTS]; /* all items in memory, by id */
    int jobs;                            /* items running on the pool */
    bool stopping, abandoned;
    struct table_sync table_sync;
};

struct work_item *item_new(struct engine *engine, const struct work_kind *kind, struct str payload) MUST_CHECK;
void item_free(struct work_item *item);
size_t engine_item_count(const struct engine *engine);
void engine_add(struct engine *engine, struct work_item *item); /* takes ownership and runs it */
struct work_item *engine_find(struct engine *engine, int64_t id);
void engine_discard(struct engine *engine, struct work_item *item); /* its outcome is recorded, or cannot be */

bool table_sync_open(struct engine *engine) MUST_CHECK;
void table_sync_close(struct engine *engine);
void table_sync_start_if_due(struct engine *engine);
int64_t table_sync_due_ns(const struct engine *engine);

extern const struct statement work_insert, work_delete, work_change, work_renew, work_claim, work_census;

#endif
