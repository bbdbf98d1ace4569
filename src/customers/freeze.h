/* Freezes and recovers a customer: in one transaction with its billing accounts, its event, the audit row and the work
 * items. Deleting is customers/expiry.h. */
#ifndef CUSTOMERS_FREEZE_H
#define CUSTOMERS_FREEZE_H

#include "base/arena.h"
#include "customers/state.h"
#include "mail/mail.h"
#include "pg/pg.h"

/* Who asked for it, for the audit. */
struct actor {
    const char *kind;           /* "owner", "key", "admin", "operator" (at the command line), "system" */
    const char *id;             /* a user's or a key's UUID; NULL for none */
    const char *correlation_id; /* NULL for none */
};

/* For the work items. */
struct change_needs {
    struct post *post;              /* mails */
    struct engine *engine;          /* NULL at the command line: any instance takes the work */
    const struct work_kind *hangup; /* ends a frozen customer's calls; NULL where there is none */
};

struct changed {
    enum { CHANGE_DONE, CHANGE_UNCHANGED, CHANGE_UNKNOWN, CHANGE_REFUSED } outcome;
    struct str object;    /* the customer object, as JSON, of the arena; with the first two */
    int64_t committed_ns; /* when the commit had returned */
};

enum err customer_change(const struct change_needs *needs, struct pg *pg, const char *customer_id,
                         enum customer_event event, const struct actor *actor, int64_t deadline_ns, struct arena *arena,
                         struct changed *ret) MUST_CHECK;

/* The time from which every instance's gate knows a change that was committed at committed_ns. It is not answered earlier. */
int64_t customer_change_known_ns(int64_t committed_ns);

/* An audit row; `customer_id` may be NULL. Texts must live until the trip. */
struct pg_call customer_log(const char *customer_id, const char *action, const struct actor *actor,
                            const char *outcome);

#endif
