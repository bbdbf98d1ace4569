#include "gate/credential_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define WAYS 6
#define STRIPES 64

struct cached {
    struct digest by;
    struct cached_credential as;
    int64_t until_ns; /* 0: free */
    enum credential_kind kind;
};

/* cache: seen */
struct credential_cache {
    size_t sets; /* of WAYS entries; a power of two */
    _Atomic int64_t forgot_ns;
    pthread_mutex_t stripes[STRIPES];
    struct cached entries[];
};

struct credential_cache *credential_cache_new(size_t entries)
{
    size_t sets = STRIPES;
    while (sets * WAYS < entries)
        sets *= 2;
    struct credential_cache *credentials =
        calloc(1, sizeof *credentials + sets * WAYS * sizeof credentials->entries[0]);
    if (!credentials)
        return NULL;
    credentials->sets = sets;
    atomic_init(&credentials->forgot_ns, INT64_MIN);
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_init(&credentials->stripes[i], NULL);
    return credentials;
}

void credential_cache_free(struct credential_cache *credentials)
{
    if (!credentials)
        return;
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_destroy(&credentials->stripes[i]);
    free(credentials);
}

static size_t set_of(const struct credential_cache *credentials, const struct digest *by)
{
    size_t hash;
    memcpy(&hash, by->bytes, sizeof hash);
    return hash & (credentials->sets - 1);
}

static bool is_of(const struct cached *e, enum credential_kind kind, const struct digest *by)
{
    return e->until_ns && e->kind == kind && memcmp(&e->by, by, sizeof *by) == 0;
}

bool credential_cache_find(struct credential_cache *credentials, enum credential_kind kind, const struct digest *by,
                           int64_t now_ns, struct cached_credential *ret)
{
    size_t set = set_of(credentials, by);
    bool found = false;
    pthread_mutex_lock(&credentials->stripes[set % STRIPES]);
    for (size_t i = set * WAYS; i < (set + 1) * WAYS && !found; i++)
        if (is_of(&credentials->entries[i], kind, by) && credentials->entries[i].until_ns > now_ns) {
            *ret = credentials->entries[i].as;
            found = true;
        }
    pthread_mutex_unlock(&credentials->stripes[set % STRIPES]);
    return found;
}

void credential_cache_add(struct credential_cache *credentials, enum credential_kind kind, const struct digest *by,
                          const struct cached_credential *as, int64_t asked_ns, int64_t until_ns)
{
    size_t set = set_of(credentials, by);
    struct cached *ways = &credentials->entries[set * WAYS], *place = &ways[0];
    if (until_ns > asked_ns + CREDENTIAL_CACHE_NS)
        until_ns = asked_ns + CREDENTIAL_CACHE_NS;
    pthread_mutex_lock(&credentials->stripes[set % STRIPES]);
    for (int i = 0; i < WAYS; i++) {
        if (is_of(&ways[i], kind, by)) {
            place = &ways[i];
            break;
        }
        if (ways[i].until_ns < place->until_ns)
            place = &ways[i];
    }
    /* Whoever forgets says so first, then goes through the stripes: either that is seen here, or this is there. */
    if (asked_ns > atomic_load(&credentials->forgot_ns))
        *place = (struct cached){*by, *as, until_ns, kind};
    pthread_mutex_unlock(&credentials->stripes[set % STRIPES]);
}

static bool leads_to(const struct cached *e, struct customer_set *customers, struct customer_set *keys)
{
    int64_t ignored;
    return !customers || customer_set_find(customers, e->as.customer, &ignored) ||
           (e->kind == CREDENTIAL_KEY && customer_set_find(keys, e->as.id, &ignored));
}

void credential_cache_remove(struct credential_cache *credentials, struct customer_set *customers,
                             struct customer_set *keys)
{
    atomic_store(&credentials->forgot_ns, clock_ns());
    for (size_t stripe = 0; stripe < STRIPES; stripe++) {
        pthread_mutex_lock(&credentials->stripes[stripe]);
        for (size_t set = stripe; set < credentials->sets; set += STRIPES)
            for (struct cached *e = &credentials->entries[set * WAYS], *end = e + WAYS; e < end; e++)
                if (e->until_ns && leads_to(e, customers, keys))
                    e->until_ns = 0;
        pthread_mutex_unlock(&credentials->stripes[stripe]);
    }
}
