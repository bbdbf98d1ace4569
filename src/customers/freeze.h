/* Freezes and recovers a customer: writes its row, and the triggers of customer_customers write what follows from it (billing,
 * the event, the audit row, the work items), as they do for every program. Deleting is customers/expiry.h. */
#ifndef CUSTOMERS_FREEZE_H
#define CUSTOMERS_FREEZE_H

#include "base/arena.h"
#include "customers/state.h"
#include "pg/pg.h"

/* Who asked for it, for the audit, and for who may recover what was frozen. */
struct actor {
    const char *kind;           /* "owner", "key", "admin", "operator" (at the command line), "system" */
    const char *id;             /* a user's or a key's UUID; NULL for none */
    const char *correlation_id; /* NULL for none */
    const char *language;       /* of the person who asked for their own customer; NULL when not known */
};

struct changed {
    enum {
        CHANGE_DONE,
        CHANGE_UNCHANGED,
        CHANGE_UNKNOWN,
        CHANGE_REFUSED,   /* not possible from its state */
        CHANGE_BY_ADMIN,  /* an administrator froze it: its owner may not recover it */
        CHANGE_TOO_OFTEN, /* its owner has frozen it as often as RECLAIM_FREEZE_LIMIT allows */
    } outcome;
    struct str object;    /* the customer object, as JSON, of the arena; with the first two */
    int64_t wait_s;       /* with CHANGE_TOO_OFTEN */
    int64_t committed_ns; /* when the commit had returned */
};

/* `reason` is for administrators who freeze; NULL for none. The object has what the actor may see. */
enum err customer_change(struct pg *pg, const char *customer_id, enum customer_event event, const struct actor *actor,
                         const char *reason, int64_t deadline_ns, struct arena *arena, struct changed *ret) MUST_CHECK;
#define FREEZE_REASON_MAX 1000

/* The time from which every instance's gate knows a change that was committed at committed_ns. It is not answered earlier. */
int64_t customer_change_known_ns(int64_t committed_ns);

/* An audit row; `customer_id` may be NULL. Texts must live until the trip. */
struct pg_call customer_log(const char *customer_id, const char *action, const struct actor *actor,
                            const char *outcome);

/* On the leader: counts the customers that are frozen and recovered in a cycle, for the metric. */
enum err customers_count_frozen_again(struct pg *pg, int64_t deadline_ns) MUST_CHECK;
/* On the leader: writes the consequences of changes that were noted, but not followed (reclaim.customer_sweep). */
enum err customers_sweep(void *context, struct pg *pg, int64_t deadline_ns);

#endif
