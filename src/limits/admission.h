/* Rate limiting: all tiers of a request are decided together, many requests in one statement, exactly across all
 * instances (reclaim.admit). Refusals that still apply are answered from a cache. */
#ifndef LIMITS_ADMISSION_H
#define LIMITS_ADMISSION_H

#include "limits/refusals.h"
#include "pg/batch.h"
#include "pg/listener.h"

#define TIERS_OF_REQUEST_MAX 4

/* The state of one tier for a request. */
struct standing {
    struct counted counted;
    struct limit limit;
    bool soft;     /* refuses nothing; counted if there is room */
    bool was_full; /* of a soft tier: there was none */
    int64_t remaining;
    int64_t reset_ns; /* time until the oldest counted request leaves the window */
    int64_t wait_ns;  /* time until another request is admitted; 0: now */
};

enum admission_verdict { ADMISSION_UNDECIDED, ADMISSION_GRANTED, ADMISSION_REFUSED, ADMISSION_FAILED };

struct ticket { /* embedded in the caller's struct */
    struct batch_item item;
    struct standing tiers[TIERS_OF_REQUEST_MAX];
    size_t count;
    enum admission_verdict verdict;
    enum err fault; /* with ADMISSION_FAILED */
    /* Called with the verdict, on a worker thread; or on the calling thread before admission_ask() returns. */
    void (*decided)(struct ticket *ticket);
};

struct admission;

struct admission *admission_new(void) MUST_CHECK;
void admission_free(struct admission *a);
/* Sets the limits; clears the cache of refusals. */
void admission_configure(struct admission *a, const struct tier_table *tiers);
struct tier_table admission_tiers(struct admission *a); /* those in force */
/* Starts to use the database for verdicts, and to listen for resets on the direct URL. Requests with a key that another
 * program holds wait on `patient_pool`, so that no other waits behind them. */
enum err admission_open(struct admission *a, const char *direct_url, struct pool *pool, struct pool *patient_pool,
                        struct why *why) MUST_CHECK;

/* True while resets are received, so that cached refusals may be used. */
bool admission_is_listening(const struct admission *a);

/* Adds a tier to a ticket, unless the tier is off. */
void ticket_count_in(struct admission *a, struct ticket *t, struct counted counted);
/* The same for a tier that refuses nothing itself: the caller asks ticket_soft_is_full(). */
void ticket_count_softly(struct admission *a, struct ticket *t, struct counted counted);
/* A tier of clients, and for IPv6 also that of their sites. */
void ticket_count_client(struct admission *a, struct ticket *t, enum tier tier, const struct digest *key,
                         const struct ip *client);
/* Gets a verdict: from the cache, from the database, or immediately when no tier applies. */
void admission_ask(struct admission *a, struct ticket *t);

/* Gives the verdict when a refusal is cached; otherwise does nothing and returns false. */
bool admission_refuse(struct admission *a, struct ticket *t) MUST_CHECK;

/* The tier with the longest wait of a refused request, or the least remaining of an admitted one; NULL when none. Soft
 * tiers do not count, until one of the calls below. */
const struct standing *ticket_tightest(const struct ticket *t);

/* Whether a soft tier of an admitted request had no room for it. */
bool ticket_soft_is_full(const struct ticket *t);
/* From here on soft tiers are like others, for the headers. */
void ticket_show_soft(struct ticket *t);
/* Turns the verdict into a refusal by the soft tiers that were full. */
void ticket_refuse_softly(struct ticket *t);

/* How many requests limits have refused since this process started. */
unsigned long long admission_refused(void);

#define LIMITS_CHANNEL "reclaim_limits" /* payload: a key, or "*" */

#endif
