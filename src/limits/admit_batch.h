/* Private to src/limits: many requests decided in one statement. */
#ifndef LIMITS_ADMIT_BATCH_H
#define LIMITS_ADMIT_BATCH_H

#include "limits/admission.h"
#include "pg/pg.h"

#define ADMIT_BATCH_MOST 512

static inline struct ticket *ticket_of(struct batch_item *item)
{
    return OWNER_OF(item, struct ticket, item);
}

/* What the database says about a key of the batch. */
struct key_state {
    struct counted counted;
    struct limit limit;
    int64_t wait_ns; /* until another request is admitted; 0: now */
    bool locked;     /* by another transaction: requests with this key were not decided */
};

struct key_states {
    size_t count;
    struct key_state of[ADMIT_BATCH_MOST * TIERS_OF_REQUEST_MAX];
};

/* Sets the verdicts of tickets (their items). Waits up to wait_ms for locks, and sets *ret_locked when one was not granted:
 * then nothing was decided. With 0 it decides what it can without waiting; the rest stays ADMISSION_UNDECIDED. */
enum err admit_batch(struct pg *pg, struct batch_item **items, size_t count, int wait_ms, int64_t deadline_ns,
                     struct key_states *ret, bool *ret_locked) MUST_CHECK;

extern const struct statement admission_decide;

#endif
