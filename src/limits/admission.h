/* Letting requests in: all tiers of a request decided together, many requests in one statement, exactly, over any number
 * of instances (reclaim.admit). Refusals that are known to last come from memory. */
#ifndef LIMITS_ADMISSION_H
#define LIMITS_ADMISSION_H

#include "limits/refusals.h"
#include "pg/batch.h"
#include "pg/listener.h"

#define TIERS_OF_REQUEST_MAX 3

/* How one tier stands for the one who asked. */
struct standing {
    struct counted counted;
    struct limit limit;
    int64_t remaining;
    int64_t reset_ns; /* how long until the oldest request counted leaves the window */
    int64_t wait_ns;  /* how long until one more is let in; 0: at once */
};

enum admission_verdict { ADMISSION_UNDECIDED, ADMISSION_GRANTED, ADMISSION_REFUSED, ADMISSION_FAILED };

struct ticket { /* a member of what asks */
    struct batch_item item;
    struct standing tiers[TIERS_OF_REQUEST_MAX];
    size_t count;
    enum admission_verdict verdict;
    enum err fault; /* with ADMISSION_FAILED */
    /* On a worker, once the verdict is there; or on the asking thread, before admission_ask returns. */
    void (*decided)(struct ticket *ticket);
};

struct admission;

struct admission *admission_new(void) MUST_CHECK;
void admission_free(struct admission *a);
/* The limits in force; forgets all refusals. */
void admission_configure(struct admission *a, const struct tier_table *tiers);
/* The database is ready: verdicts come from it, and resets are listened for over the direct URL. */
enum err admission_open(struct admission *a, const char *direct_url, struct pool *pool, struct why *why) MUST_CHECK;

/* Resets are being heard, and so refusals may come from memory. */
bool admission_is_listening(const struct admission *a);

/* Adds a tier to a ticket, unless the tier is off. */
void ticket_count_in(struct admission *a, struct ticket *t, struct counted counted);
/* Gets a verdict: from memory, from the database, or at once when nothing is limited. */
void admission_ask(struct admission *a, struct ticket *t);

/* Gives the verdict when memory knows that it is a refusal; otherwise nothing happens, and false is returned. */
bool admission_refuse(struct admission *a, struct ticket *t) MUST_CHECK;

/* The tier a refused caller must wait for longest, or that an admitted one has least left of; NULL without tiers. */
const struct standing *ticket_tightest(const struct ticket *t);

#define LIMITS_CHANNEL "reclaim_limits" /* payload: a key, or "*" */

extern const struct statement admission_decide;

#endif
