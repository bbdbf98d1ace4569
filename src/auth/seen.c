#include "auth/seen.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define WAYS 6
#define STRIPES 64

struct entry {
    struct digest by;
    struct seen_as as;
    int64_t until_ns; /* 0: free */
    enum seen_kind kind;
};

/* cache: seen */
struct seen {
    size_t sets; /* of WAYS entries; a power of two */
    _Atomic int64_t forgot_ns;
    pthread_mutex_t stripes[STRIPES];
    struct entry entries[];
};

struct seen *seen_new(size_t entries)
{
    size_t sets = STRIPES;
    while (sets * WAYS < entries)
        sets *= 2;
    struct seen *seen = calloc(1, sizeof *seen + sets * WAYS * sizeof seen->entries[0]);
    if (!seen)
        return NULL;
    seen->sets = sets;
    atomic_init(&seen->forgot_ns, INT64_MIN);
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_init(&seen->stripes[i], NULL);
    return seen;
}

void seen_free(struct seen *seen)
{
    if (!seen)
        return;
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_destroy(&seen->stripes[i]);
    free(seen);
}

static size_t set_of(const struct seen *seen, const struct digest *by)
{
    size_t hash;
    memcpy(&hash, by->bytes, sizeof hash);
    return hash & (seen->sets - 1);
}

static bool is_of(const struct entry *e, enum seen_kind kind, const struct digest *by)
{
    return e->until_ns && e->kind == kind && memcmp(&e->by, by, sizeof *by) == 0;
}

bool seen_find(struct seen *seen, enum seen_kind kind, const struct digest *by, int64_t now_ns, struct seen_as *ret)
{
    size_t set = set_of(seen, by);
    bool found = false;
    pthread_mutex_lock(&seen->stripes[set % STRIPES]);
    for (size_t i = set * WAYS; i < (set + 1) * WAYS && !found; i++)
        if (is_of(&seen->entries[i], kind, by) && seen->entries[i].until_ns > now_ns) {
            *ret = seen->entries[i].as;
            found = true;
        }
    pthread_mutex_unlock(&seen->stripes[set % STRIPES]);
    return found;
}

void seen_learn(struct seen *seen, enum seen_kind kind, const struct digest *by, const struct seen_as *as,
                int64_t asked_ns, int64_t until_ns)
{
    size_t set = set_of(seen, by);
    struct entry *ways = &seen->entries[set * WAYS], *place = &ways[0];
    if (until_ns > asked_ns + SEEN_NS)
        until_ns = asked_ns + SEEN_NS;
    pthread_mutex_lock(&seen->stripes[set % STRIPES]);
    for (int i = 0; i < WAYS; i++) {
        if (is_of(&ways[i], kind, by)) {
            place = &ways[i];
            break;
        }
        if (ways[i].until_ns < place->until_ns)
            place = &ways[i];
    }
    /* Whoever forgets says so first, then goes through the stripes: either that is seen here, or this is there. */
    if (asked_ns > atomic_load(&seen->forgot_ns))
        *place = (struct entry){*by, *as, until_ns, kind};
    pthread_mutex_unlock(&seen->stripes[set % STRIPES]);
}

static bool leads_to(const struct entry *e, struct customer_set *customers, struct customer_set *keys)
{
    int64_t ignored;
    return !customers || customer_set_find(customers, e->as.customer, &ignored) ||
           (e->kind == SEEN_KEY && customer_set_find(keys, e->as.id, &ignored));
}

void seen_forget(struct seen *seen, struct customer_set *customers, struct customer_set *keys)
{
    atomic_store(&seen->forgot_ns, clock_ns());
    for (size_t stripe = 0; stripe < STRIPES; stripe++) {
        pthread_mutex_lock(&seen->stripes[stripe]);
        for (size_t set = stripe; set < seen->sets; set += STRIPES)
            for (struct entry *e = &seen->entries[set * WAYS], *end = e + WAYS; e < end; e++)
                if (e->until_ns && leads_to(e, customers, keys))
                    e->until_ns = 0;
        pthread_mutex_unlock(&seen->stripes[stripe]);
    }
}
