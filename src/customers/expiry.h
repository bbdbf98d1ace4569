/* Deleting customers: when their grace is over, or one for an admin. Both call reclaim.delete_customers: one transaction that
 * removes the personal data and writes the receipts that the cascade (src/erasure) has to complete. */
#ifndef CUSTOMERS_EXPIRY_H
#define CUSTOMERS_EXPIRY_H

#include "base/digest.h"
#include "customers/freeze.h"
#include "work/shift.h"

/* For sealed addresses and hang-ups; the database does the rest. */
struct deletion {
    const struct digest *last_mail_key; /* NULL: no last mails */
    struct engine *engine;              /* NULL at the command line */
    const struct work_kind *hangup;     /* ends the calls of an active customer; NULL where there is none */
};

/* A pass over the customers that are due, in the order of their schedules. */
struct expiry_pass {
    int64_t grace_ms;
    int64_t due;               /* when it began */
    int64_t processed, failed; /* so far */
    bool over;
    /* Used by expiry_step(): */
    int size;
    char after[48], after_id[37];
};

/* Counts what is due. */
enum err expiry_begin(struct pg *pg, int64_t grace_ms, int64_t deadline_ns, struct expiry_pass *ret) MUST_CHECK;
/* One batch in one transaction. A customer that cannot be deleted is logged, counted and skipped. */
enum err expiry_step(const struct deletion *needs, struct pg *pg, const char *actor,
                     struct expiry_pass *pass) MUST_CHECK;

/* On the leader: a pass, with its progress in the metrics, until the shift ends. */
enum err expiry_run(const struct deletion *needs, struct pg *pg, int64_t grace_ms, struct shift *shift) MUST_CHECK;

/* One customer, active or frozen. Deleted before: the unfinished receipts of its cascade are retried. */
struct deletion_result {
    enum { DELETION_DONE, DELETION_REDRIVEN, DELETION_UNKNOWN, DELETION_HELD } outcome;
    struct str object; /* of the arena; with the first two */
    int64_t committed_ns;
};
enum err customer_delete(const struct deletion *needs, struct pg *pg, const char *customer_id,
                         const struct actor *actor, int64_t deadline_ns, struct arena *arena,
                         struct deletion_result *ret) MUST_CHECK;

/* A legal hold keeps expiry and admins from deleting a customer; `reason` NULL ends it. ERR_MISSING: no such customer, or it
 * has been deleted. The answer is the customer object with `hold`. */
enum err customer_legal_hold(struct pg *pg, const char *customer_id, const char *reason, const struct actor *actor,
                             int64_t deadline_ns, struct arena *arena, struct str *ret_object) MUST_CHECK;
#define HOLD_REASON_MAX 1000

/* Queues the reminder mails, one for each time before the deletion, in any order. */
enum err reminders_run(struct pg *pg, int64_t grace_ms, const int64_t *before_ms, size_t count,
                       struct shift *shift) MUST_CHECK;

extern const struct statement expiry_list; /* $1 grace in ms, $2 after, $3 after id, $4 limit → id scheduled after */
#define EXPIRY_FIRST "-infinity"

extern const struct statement *const expiry_statements[];
extern const size_t expiry_statement_count;

#endif
