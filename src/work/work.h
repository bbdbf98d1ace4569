/* Work that outlives the request it comes from: one durable table (reclaim.work_items), one engine in each instance.
 *
 * A flow promises an item inside its own transaction, leased to this process from the start, and hands it over once
 * that has committed; it then runs at once, from memory:
 *
 *   AUTO(work_item) struct work_item *item = work_promise(engine, &kind, payload, &writes[0]);
 *   if (!item)
 *       return ERR_MEMORY;
 *   if ((e = tx_commit(tx, writes, COUNT_OF(writes))))
 *       return e;                        (the item is forgotten)
 *   work_kick(&item, &writes[0]);        (it is the engine's now)
 *
 * A process that dies lets its leases run out, and within 30 s any instance, or the next start, takes the items over.
 * So an item runs at least once, and by nobody else while its lease lasts: leases are renewed while it runs, and
 * work_lease() is asked before each thing that others can see. */
#ifndef WORK_WORK_H
#define WORK_WORK_H

#include <stdatomic.h>

#include "base/wheel.h"
#include "pg/pool.h"

#define WORK_PAYLOAD_MAX 4096

struct client; /* client/client.h */
struct engine;
struct work_item;

/* What is done with an item of this name. A kind has either `run` or `start`. */
struct work_kind {
    const char *name;                      /* in the table and the metrics */
    int tries_max;                         /* runs begun, those that a crash ended included; then it is a dead letter */
    int64_t pause_first_ns, pause_most_ns; /* before the second run, doubled before each further one; with jitter */
    void *context;

    /* Linear, on a connection of the pool, until the deadline at most. OK: done. ERR_CONFLICT: run again at once, as
     * the pool does. ERR_INPUT: dead, it will never do. Others: again after a pause. */
    enum err (*run)(struct work_item *item, struct pg *pg, int64_t deadline_ns);

    /* On the engine's thread, which must never be kept waiting; ends with work_end(), then or later. */
    void (*start)(struct work_item *item);
    /* The engine stops: end the item soon, with WORK_RETURNED unless it has just come to its end. */
    void (*abandon)(struct work_item *item);

    /* Frees item->handed; on the engine's thread, or on that of a flow which did not commit. */
    void (*forget)(void *handed);
};

enum work_outcome {
    WORK_DONE,     /* the item goes */
    WORK_AGAIN,    /* after a pause, unless that was the last try */
    WORK_DEAD,     /* kept for people to look at */
    WORK_RETURNED, /* not finished here; another instance may go on at once */
    WORK_DROPPED,  /* lost to another */
};

struct work_note { /* see work_post */
    struct work_note *next;
    void (*run)(struct work_note *note);
};

struct work_item {
    struct engine *engine;
    const struct work_kind *kind;
    int64_t id;
    int tries;          /* this run included */
    struct str payload; /* JSON; a NUL follows */
    void *handed;       /* what the flow passed along in memory; NULL when the item was taken over */

    /* The engine's: */
    _Atomic int64_t leased_until_ns; /* by our clock, and never later than by the database's */
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

/* Fills the call that inserts the item; it must be sent soon, and its lease counts from here. The kind must be one of the
 * engine's. NULL without memory or for a payload beyond WORK_PAYLOAD_MAX. */
struct work_item *work_promise(struct engine *engine, const struct work_kind *kind, const char *payload,
                               struct pg_call *ret_insert) MUST_CHECK;
/* The same for who may have no engine: then *ret is NULL, and whichever instance looks next takes the item up. The
 * payload must live until the trip. ERR_MEMORY. */
enum err work_owe(struct engine *engine, const struct work_kind *kind, const char *payload, struct pg_call *ret_insert,
                  struct work_item **ret) MUST_CHECK;
/* After the commit. An engine that is full or stopping leaves the item to whoever claims it from the table. */
void work_kick(struct work_item **item, const struct pg_call *inserted);
void work_item_cleanup(struct work_item **item); /* for AUTO(work_item): forgets one that was not handed over */

/* May something be done for the item that takes up to `for_ns`? WORK_WAIT: not now, the lease wants renewing and the
 * database does not answer; ask again a little later. WORK_LOST: it is another's by now; work_end(…, WORK_DROPPED). */
enum work_lease { WORK_MINE, WORK_WAIT, WORK_LOST };
enum work_lease work_lease(const struct work_item *item, int64_t for_ns);

/* `reason` is a constant: nothing personal ever reaches the table or the log. The item is the engine's again. */
void work_end(struct work_item *item, enum work_outcome outcome, const char *reason);

/* What a kind needs on the engine's thread. */
struct client *work_client(struct engine *engine);
struct pool *work_pool(struct engine *engine);

struct work_timer { /* a member of what waits; zero at first */
    struct wheel_entry entry;
    void (*due)(struct work_timer *timer);
};
void work_at(struct engine *engine, struct work_timer *timer, int64_t at_ns); /* an earlier call is overridden */
void work_cancel(struct engine *engine, struct work_timer *timer);

/* From any thread: has the engine's thread run the note. Only for an item that has not ended: the engine waits for those
 * before it stops. */
void work_post(struct engine *engine, struct work_note *note);

struct work_config {
    struct pool *pool;
    const struct work_kind *const *kinds;
    size_t kind_count;
    const char *ca_file;       /* for the client; NULL: the system's authorities */
    int64_t lease_ns, poll_ns; /* 0: 25 s and 2 s */
};

struct engine *work_start(const struct work_config *config, struct why *why) MUST_CHECK;
/* Claims nothing more, gives what runs up to the deadline, then gives the rest back to the table. Before pool_stop, since
 * it needs the pool; what is handed over later is left to others. */
void work_stop(struct engine *engine, int64_t deadline_ns);
void work_free(struct engine *engine); /* after pool_stop, when no flow can know of it any more; NULL is fine */

struct work_state {
    size_t in_memory;      /* waiting, running or being settled */
    int64_t waiting, dead; /* in the table, when last counted */
    int64_t oldest_due_ms; /* how long the oldest due item waits */
};
struct work_state work_look(struct engine *engine);

extern const struct statement *const work_statements[];
extern const size_t work_statement_count;

#endif
