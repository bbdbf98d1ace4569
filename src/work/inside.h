/* What the files of this folder know of each other. Private to this folder. */
#ifndef WORK_INSIDE_H
#define WORK_INSIDE_H

#include <pthread.h>

#include "base/buf.h"
#include "base/clock.h"
#include "work/work.h"

#define WORK_KINDS_MAX 16
#define WORK_SLOTS 4096

enum item_state {
    ITEM_PROMISED, /* a flow's, not yet ours */
    ITEM_WAITING,  /* for a connection of the pool */
    ITEM_RUNNING,
    ITEM_ENDED,    /* to be told to the table */
    ITEM_SETTLING, /* being told */
};

struct item_list {
    struct work_item *first, *last;
    size_t count;
};

void list_add(struct item_list *list, struct work_item *item);
void list_take(struct item_list *list, struct work_item *item);

/* What has been done; of other items that ended id, new state, pause and error, by place; what to renew. */
enum ledger_text { DONE, IDS, STATES, PAUSES, ERRORS, RENEWALS, LEDGER_TEXTS };

/* What is told to the table and asked of it in one trip; one such trip at a time. Its texts and results belong to the
 * engine's thread, but to the worker while busy. */
struct ledger {
    struct job job;
    struct work_note note;
    struct engine *engine;
    bool busy;
    enum err err;
    int64_t next_ns;   /* when it is due again; sooner when something has ended */
    int64_t claim_ns;  /* when to look for items again */
    int64_t census_ns; /* when to count them again */

    struct buf texts[LEDGER_TEXTS]; /* array literals */
    size_t done_count, changed_count, renewal_count, claim_most;
    bool census;

    int64_t leased_from_ns;   /* before the trip began */
    struct item_list claimed; /* new ones */
    int64_t *renewed;         /* ids */
    size_t renewed_count;
};

struct engine {
    struct pool *pool;
    struct client *client;
    const struct work_kind *kinds[WORK_KINDS_MAX];
    size_t kind_count;
    struct buf kind_names; /* an array literal */
    int64_t lease_ns, poll_ns;
    int64_t number; /* whose leases these are: drawn by lot for each engine */
    pthread_t thread;

    pthread_mutex_t lock; /* for what follows */
    struct work_note *notes, **last_note;
    bool closed; /* takes nothing over any more */
    int64_t stop_ns;
    struct work_state state;

    /* The thread's own: */
    struct wheel timers;
    struct item_list waiting, running, ended, settling;
    struct work_item *slots[WORK_SLOTS]; /* all of those, by id */
    int jobs;                            /* running on the pool */
    bool stopping, abandoned;
    struct ledger ledger;
};

struct work_item *item_new(struct engine *engine, const struct work_kind *kind, struct str payload) MUST_CHECK;
void item_free(struct work_item *item);
size_t engine_item_count(const struct engine *engine);
void engine_adopt(struct engine *engine, struct work_item *item); /* runs it as soon as may be */
struct work_item *engine_find(struct engine *engine, int64_t id);
void engine_discard(struct engine *engine, struct work_item *item); /* settled, or given up */

bool ledger_open(struct engine *engine) MUST_CHECK;
void ledger_close(struct engine *engine);
/* Sets out when it is due and not under way. */
void ledger_tend(struct engine *engine);
int64_t ledger_due_ns(const struct engine *engine);

extern const struct statement work_insert, work_delete, work_change, work_renew, work_claim, work_census;

#endif
