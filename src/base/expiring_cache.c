#include "base/expiring_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define WAYS 6
#define STRIPES 64

struct entry {
    struct digest key;
    int64_t until_ns; /* 0: free */
    int kind;
    _Alignas(8) unsigned char value[];
};

struct expiring_cache {
    size_t sets, value_size, entry_size;
    _Atomic int64_t removed_ns; /* when entries were last removed */
    pthread_mutex_t stripes[STRIPES];
    _Alignas(8) unsigned char entries[];
};

struct expiring_cache *expiring_cache_new(size_t entries, size_t value_size)
{
    size_t sets = (entries + WAYS - 1) / WAYS;
    size_t entry_size = (sizeof(struct entry) + value_size + 7) / 8 * 8;
    struct expiring_cache *cache = calloc(1, sizeof *cache + sets * WAYS * entry_size);
    if (!cache)
        return NULL;
    cache->sets = sets;
    cache->value_size = value_size;
    cache->entry_size = entry_size;
    atomic_init(&cache->removed_ns, INT64_MIN);
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_init(&cache->stripes[i], NULL);
    return cache;
}

void expiring_cache_free(struct expiring_cache *cache)
{
    if (!cache)
        return;
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_destroy(&cache->stripes[i]);
    free(cache);
}

static size_t set_of(const struct expiring_cache *cache, int kind, const struct digest *key)
{
    uint64_t hash;
    memcpy(&hash, key->bytes, sizeof hash);
    hash += (uint64_t)kind * 0x9e3779b97f4a7c15u;
    return (size_t)((unsigned __int128)hash * cache->sets >> 64);
}

static struct entry *entry_at(struct expiring_cache *cache, size_t set, size_t way)
{
    return (struct entry *)(void *)(cache->entries + (set * WAYS + way) * cache->entry_size);
}

/* The key's entry in its set, or NULL. The set's stripe is locked. */
static struct entry *entry_of(struct expiring_cache *cache, size_t set, int kind, const struct digest *key)
{
    for (size_t way = 0; way < WAYS; way++) {
        struct entry *e = entry_at(cache, set, way);
        if (e->until_ns && e->kind == kind && memcmp(&e->key, key, sizeof *key) == 0)
            return e;
    }
    return NULL;
}

static struct entry *first_to_expire(struct expiring_cache *cache, size_t set)
{
    struct entry *first = entry_at(cache, set, 0);
    for (size_t way = 1; way < WAYS; way++)
        if (entry_at(cache, set, way)->until_ns < first->until_ns)
            first = entry_at(cache, set, way);
    return first;
}

int64_t expiring_cache_find(struct expiring_cache *cache, int kind, const struct digest *key, int64_t now_ns,
                            void *ret_value)
{
    size_t set = set_of(cache, kind, key);
    int64_t until_ns = 0;
    pthread_mutex_lock(&cache->stripes[set % STRIPES]);
    const struct entry *e = entry_of(cache, set, kind, key);
    if (e && e->until_ns > now_ns) {
        until_ns = e->until_ns;
        memcpy(ret_value, e->value, cache->value_size);
    }
    pthread_mutex_unlock(&cache->stripes[set % STRIPES]);
    return until_ns;
}

void expiring_cache_put(struct expiring_cache *cache, int kind, const struct digest *key, const void *value,
                        int64_t asked_ns, int64_t until_ns)
{
    size_t set = set_of(cache, kind, key);
    pthread_mutex_lock(&cache->stripes[set % STRIPES]);
    /* A removal sets removed_ns before it locks the stripes: either it is noticed here, or it removes this entry. */
    if (asked_ns > atomic_load(&cache->removed_ns)) {
        struct entry *e = entry_of(cache, set, kind, key);
        if (!e)
            e = first_to_expire(cache, set);
        e->key = *key;
        e->kind = kind;
        e->until_ns = until_ns;
        memcpy(e->value, value, cache->value_size);
    }
    pthread_mutex_unlock(&cache->stripes[set % STRIPES]);
}

void expiring_cache_remove(struct expiring_cache *cache, int kind, const struct digest *key)
{
    size_t set = set_of(cache, kind, key);
    atomic_store(&cache->removed_ns, clock_ns());
    pthread_mutex_lock(&cache->stripes[set % STRIPES]);
    struct entry *e = entry_of(cache, set, kind, key);
    if (e)
        e->until_ns = 0;
    pthread_mutex_unlock(&cache->stripes[set % STRIPES]);
}

void expiring_cache_remove_where(struct expiring_cache *cache,
                                 bool (*chosen)(void *context, int kind, const void *value), void *context)
{
    atomic_store(&cache->removed_ns, clock_ns());
    for (size_t stripe = 0; stripe < STRIPES; stripe++) {
        pthread_mutex_lock(&cache->stripes[stripe]);
        for (size_t set = stripe; set < cache->sets; set += STRIPES)
            for (size_t way = 0; way < WAYS; way++) {
                struct entry *e = entry_at(cache, set, way);
                if (e->until_ns && (!chosen || chosen(context, e->kind, e->value)))
                    e->until_ns = 0;
            }
        pthread_mutex_unlock(&cache->stripes[stripe]);
    }
}
