/* Deleting customers: when their grace is over, or one for an admin. Both call reclaim.delete_customers, which clears what is
 * personal and changes the state in one statement; the triggers write what follows. */
#ifndef CUSTOMERS_EXPIRY_H
#define CUSTOMERS_EXPIRY_H

#include "customers/cooldown.h"
#include "customers/freeze.h"
#include "work/shift.h"

/* What a deletion writes beside the customer; by the settings. */
struct deletion_terms {
    const struct digest *last_mail_key; /* seals the address of the last mail; NULL: none is sent */
    const struct digest *cooldown_key;  /* hashes the addresses that cool down, where the installation has that */
};

/* Why a pass deletes nothing. */
enum expiry_verdict {
    EXPIRY_RUNS,
    EXPIRY_BRAKED,        /* an unusual share of all customers became due since the last pass */
    EXPIRY_CLOCKS_DIFFER, /* the database's clock and this machine's: one of them is wrong */
};

/* A pass over the customers that are due, or over a part of them, in the order of their dates. */
struct expiry_pass {
    enum expiry_verdict verdict;
    int64_t due;                /* when it began */
    int64_t became_due;         /* of these, since the last pass that was completed */
    int64_t clock_difference_s; /* by which the database's clock is ahead */
    int64_t processed, failed;  /* so far */
    bool over;
    /* Used by expiry_step(): */
    int size, part, parts;
    char until[48]; /* the installation's time when it began */
    char after[48], after_id[37];
};

#define EXPIRY_NO_BRAKE (-1)

/* Counts what is due and decides. `brake`: RECLAIM_EXPIRY_BRAKE, or EXPIRY_NO_BRAKE. With another verdict than EXPIRY_RUNS the
 * pass is over. */
enum err expiry_begin(struct pg *pg, int64_t brake, int64_t deadline_ns, struct expiry_pass *ret) MUST_CHECK;
/* One batch in one transaction. A customer that cannot be deleted is logged, counted and skipped. */
enum err expiry_step(const struct deletion_terms *terms, struct pg *pg, const char *actor,
                     struct expiry_pass *pass) MUST_CHECK;

/* On the leader: a pass over one of EXPIRY_PARTS parts, with its progress in the metrics, until the shift ends. */
enum err expiry_run(const struct deletion_terms *terms, struct pg *pg, int64_t brake, int part,
                    struct shift *shift) MUST_CHECK;
/* Parts have transactions of their own, at the same time: what a deletion writes keeps one connection busy. All customers of
 * an owner are in the same part, so that the last of them takes the login along. */
#define EXPIRY_PARTS 2

/* One customer, active or frozen. Deleted before: the unfinished receipts of its cascade are retried. */
struct deletion_result {
    enum { DELETION_DONE, DELETION_REDRIVEN, DELETION_UNKNOWN, DELETION_HELD } outcome;
    struct str object; /* of the arena; with the first two */
    int64_t committed_ns;
};
enum err customer_delete(const struct deletion_terms *terms, struct pg *pg, const char *customer_id,
                         const struct actor *actor, int64_t deadline_ns, struct arena *arena,
                         struct deletion_result *ret) MUST_CHECK;

/* A legal hold keeps expiry and admins from deleting a customer; `reason` NULL ends it. ERR_MISSING: no such customer, or it
 * has been deleted. The answer is the customer object for admins. */
enum err customer_legal_hold(struct pg *pg, const char *customer_id, const char *reason, const struct actor *actor,
                             int64_t deadline_ns, struct arena *arena, struct str *ret_object) MUST_CHECK;
#define HOLD_REASON_MAX 1000

/* Queues the reminder mails, one for each time before the deletion, in any order. */
enum err reminders_run(struct pg *pg, const int64_t *before_ms, size_t count, struct shift *shift) MUST_CHECK;

extern const struct statement expiry_list; /* $1 after, $2 after id, $3 limit → id scheduled effective after */
#define EXPIRY_FIRST "-infinity"

extern const struct statement *const expiry_statements[];
extern const size_t expiry_statement_count;

#endif
