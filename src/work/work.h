/* Durable background work: one table (reclaim.work_items), and one engine in each instance.
 *
 * A flow inserts an item in its transaction, already leased to this process, and hands it to the engine after the
 * commit. The engine runs it at once, from memory:
 *
 *   AUTO(work_item) struct work_item *item = work_promise(engine, &kind, payload, &writes[0]);
 *   if (!item)
 *       return ERR_MEMORY;
 *   if ((e = tx_commit(tx, writes, COUNT_OF(writes))))
 *       return e;                        (frees the item)
 *   work_inserted(item, &writes[0]);
 *   work_kick(&item);                    (the engine owns it now)
 *
 * Items that other programs or triggers insert, not leased, are claimed at once too: NOTIFY reclaim_work wakes every engine.
 *
 * The leases of a process that crashed expire, and within 30 s another instance, or the next start, claims the items.
 * An item runs at least once, and on one instance only while its lease is valid: leases are renewed during the run,
 * and a kind must check work_lease() before each effect outside of the process. */
#ifndef WORK_WORK_H
#define WORK_WORK_H

#include <stdatomic.h>

#include "base/wheel.h"
#include "pg/pool.h"

#define WORK_PAYLOAD_MAX 4096

struct client; /* client/client.h */
struct engine;
struct work_item;

/* How items of this name are run. A kind has either `run` or `start`. */
struct work_kind {
    const char *name;                      /* in the table and the metrics */
    int tries_max;                         /* runs begun, including those ended by a crash; then the item is dead */
    int64_t pause_first_ns, pause_most_ns; /* before the second run, doubled for each further one, with jitter */
    bool goes_on; /* while a restored database waits for the replay of erasures (base/restored.h) */
    void *context;

    /* Blocks, on a connection of the pool, until the deadline at most. OK: done. ERR_CONFLICT: the pool runs it
     * again at once. ERR_INPUT: dead, since no retry can succeed. Others: retried after a pause. */
    enum err (*run)(struct work_item *item, struct pg *pg, int64_t deadline_ns);

    /* On the engine's thread: must not block. Calls work_end(), at once or later. */
    void (*start)(struct work_item *item);
    /* The engine stops: end the item soon, with WORK_RETURNED unless it has just finished. */
    void (*abandon)(struct work_item *item);

    /* The item has no run left, since its last one was cut off: end it. NULL: it is dead. */
    void (*give_up)(struct work_item *item);

    /* Frees item->handed, on the engine's thread, or on the flow's if it did not commit. */
    void (*forget)(void *handed);
};

enum work_outcome {
    WORK_DONE,     /* the item is deleted */
    WORK_AGAIN,    /* retried after a pause, unless that was the last try */
    WORK_DEAD,     /* failed; kept in the table for an operator */
    WORK_RETURNED, /* not finished; any instance may claim it at once */
    WORK_DROPPED,  /* another instance has claimed it */
};

struct work_note { /* see work_post() */
    struct work_note *next;
    void (*run)(struct work_note *note);
};

struct work_item {
    struct engine *engine;
    const struct work_kind *kind;
    int64_t id;
    int tries;          /* including this run */
    struct str payload; /* JSON; a NUL follows */
    void *handed;       /* data from the flow, in memory only; NULL if the item was claimed from the table */
    /* Set before work_end() to have work_config.record run for it; constants. NULL: it is not. */
    const char *result, *result_detail;

    /* Private to the engine: */
    _Atomic int64_t leased_until_ns; /* by this process's clock; never later than in the table */
    atomic_bool lost;
    int state;
    enum work_outcome outcome;
    const char *reason;
    struct job job;
    enum err job_err;
    struct work_note note;
    struct work_item *next, *previous, *same_slot;
    char bytes[]; /* of the payload */
};

/* Fills the call that inserts the item; send it soon, since the lease begins now. The kind must be one of the engine's.
 * NULL without memory or for a payload longer than WORK_PAYLOAD_MAX. */
struct work_item *work_promise(struct engine *engine, const struct work_kind *kind, const char *payload,
                               struct pg_call *ret_insert) MUST_CHECK;
/* The same for callers without an engine (NULL): *ret is then NULL, the next instance that polls claims the item,
 * and the payload must stay valid until the trip. ERR_MEMORY. */
enum err work_owe(struct engine *engine, const struct work_kind *kind, const char *payload, struct pg_call *ret_insert,
                  struct work_item **ret) MUST_CHECK;
/* Reads the item's id, before the connection's next trip. */
void work_inserted(struct work_item *item, const struct pg_call *insert);
/* After the commit. An engine that is full or stopping leaves the item in the table, to be claimed. */
void work_kick(struct work_item **item);
void work_item_cleanup(struct work_item **item); /* for AUTO(work_item): frees an item that was not handed over */

/* Whether the lease lasts for `for_ns` more. WORK_WAIT: it has to be renewed first, and the database does not reply;
 * check again later. WORK_LOST: another instance has claimed the item; call work_end(…, WORK_DROPPED). */
enum work_lease { WORK_MINE, WORK_WAIT, WORK_LOST };
enum work_lease work_lease(const struct work_item *item, int64_t for_ns);

/* `reason` is a constant, so that no personal data gets into the table or the log. The engine owns the item again. */
void work_end(struct work_item *item, enum work_outcome outcome, const char *reason);

/* For kinds, on the engine's thread: */
struct client *work_client(struct engine *engine);
struct pool *work_pool(struct engine *engine);

struct work_timer { /* embed it; initially zero */
    struct wheel_entry entry;
    void (*due)(struct work_timer *timer);
};
void work_at(struct engine *engine, struct work_timer *timer, int64_t at_ns); /* replaces an earlier call */
void work_cancel(struct engine *engine, struct work_timer *timer);

/* From any thread: runs the note on the engine's thread. Only for an item that has not ended: the engine waits for
 * those before it stops. */
void work_post(struct engine *engine, struct work_note *note);

struct work_config {
    struct pool *pool;
    const struct work_kind *const *kinds;
    size_t kind_count;
    const char *ca_file; /* for the client; NULL: the system's CA certificates */
    const char
        *direct_url; /* to hear of items that triggers insert (channel reclaim_work); NULL: they wait for a poll */
    int64_t lease_ns, poll_ns; /* 0: 25 s and 2 s */
    /* Run in the transaction that records the end of items with a result: $1 [{"payload","outcome","detail"}].
     * When the database refuses it, the end is recorded without. NULL: none. */
    const struct statement *record;
};

struct engine *work_start(const struct work_config *config, struct why *why) MUST_CHECK;
/* Stops claiming, lets running items finish until the deadline, then returns the rest to the table. Call it before
 * pool_stop(), since it uses the pool. Items handed over later stay in the table for other instances. */
void work_stop(struct engine *engine, int64_t deadline_ns);
void work_free(struct engine *engine); /* after pool_stop(), when no flow uses it any more; NULL is fine */

/* Deletes dead items of the kind that died so long ago. */
enum err work_prune_dead(struct pg *pg, const struct work_kind *kind, int64_t retention_ms,
                         int64_t deadline_ns) MUST_CHECK;

/* $1 id of a dead item, which is tried again → kind, customer; no row when there is none. The engines claim it when they look. */
extern const struct statement work_redrive;

struct work_state {
    size_t in_memory;      /* waiting, running, or ended and not yet recorded */
    int64_t waiting, dead; /* in the table, when last counted */
    int64_t oldest_due_ms; /* how long the oldest due item waits */
};
struct work_state work_state(struct engine *engine);

extern const struct statement *const work_statements[];
extern const size_t work_statement_count;

#endif
