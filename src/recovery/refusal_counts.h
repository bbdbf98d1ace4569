/* Private to src/recovery: refusals by a limit and malformed requests, counted in memory by key and written once a minute, so that
 * a flood of requests is a bounded number of rows. What was counted since the last minute is lost in a crash. */
#ifndef RECOVERY_REFUSAL_COUNTS_H
#define RECOVERY_REFUSAL_COUNTS_H

#include <pthread.h>

#include "base/buf.h"
#include "limits/tiers.h"
#include "pg/pool.h"
#include "work/work.h"

#define REFUSAL_KEYS_MAX 512 /* more within a minute are counted together, by error */
#define REFUSAL_SLOTS 1024

struct refusal_count {
    struct counted by; /* the tier that refused, and whom */
    int error;         /* enum cleanup_error */
    char correlation_id[37];
    int64_t count, from_us; /* of the first one */
};

struct refusal_counts {
    atomic_bool open;
    pthread_mutex_t lock; /* for the members below */
    struct engine *engine;
    struct pool *pool;
    struct refusal_count slots[REFUSAL_SLOTS]; /* by subject; count 0: free */
    struct refusal_count others[10];           /* by error */
    size_t used;
    bool armed, busy, again;
    struct work_note note;
    struct work_timer timer;
    struct job job;
    struct buf json;
    int64_t written; /* requests that the running job is about */
};

/* Counts from now on. */
void refusal_counts_open(struct refusal_counts *counts, struct pool *pool, struct engine *engine);
/* From any thread. True for the first of its key since the counts were last written. */
bool refusal_counts_add(struct refusal_counts *counts, struct counted by, int error, const char *correlation_id);
/* Has them written now. */
void refusal_counts_flush(struct refusal_counts *counts);

#endif
