#include "gate/customer_set.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/digest.h"
#include "base/random.h"

#define PLACES_LEAST 64

struct slot {
    struct customer_id id;
    int64_t at_us; /* 0: free */
};

/* Open addressing with linear probing. A table grows by half when three quarters are taken, so that half is. */
struct table {
    struct slot *places;
    size_t capacity, count;
    uint64_t seed[2]; /* nobody can choose ids that crowd together */
};

struct customer_set {
    pthread_rwlock_t lock; /* of the writer's changes against readers; the writer itself reads without */
    struct table table;
};

enum err customer_id_parse(struct str text, struct customer_id *ret)
{
    char digits[32];
    uint8_t bytes[16];
    size_t n = 0;
    if (!str_is_uuid(text))
        return ERR_INPUT;
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] != '-')
            digits[n++] = text.at[i];
    enum err e = hex_read((struct str){digits, n}, bytes, sizeof bytes);
    if (e)
        return e;
    struct customer_id id = {0, 0};
    for (size_t i = 0; i < 8; i++) {
        id.high = id.high << 8 | bytes[i];
        id.low = id.low << 8 | bytes[i + 8];
    }
    *ret = id;
    return OK;
}

void customer_id_write(struct customer_id id, char into[37])
{
    static const char digits[] = "0123456789abcdef";
    char *to = into;
    for (int i = 0; i < 32; i++) {
        uint64_t half = i < 16 ? id.high : id.low;
        if (i == 8 || i == 12 || i == 16 || i == 20)
            *to++ = '-';
        *to++ = digits[half >> (60 - 4 * (i % 16)) & 15];
    }
    *to = '\0';
}

static bool same(struct customer_id a, struct customer_id b)
{
    return a.high == b.high && a.low == b.low;
}

static size_t home_of(const struct table *t, struct customer_id id)
{
    unsigned __int128 mixed = (unsigned __int128)(id.high ^ t->seed[0]) * (id.low ^ t->seed[1]);
    uint64_t hash = ((uint64_t)mixed ^ (uint64_t)(mixed >> 64)) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)((unsigned __int128)hash * t->capacity >> 64);
}

/* Where the customer is, or would be put. There is always a free place. */
static struct slot *place_of(const struct table *t, struct customer_id id)
{
    size_t at = home_of(t, id);
    while (t->places[at].at_us && !same(t->places[at].id, id))
        at = at + 1 < t->capacity ? at + 1 : 0;
    return &t->places[at];
}

static enum err table_new(size_t capacity, struct table *ret)
{
    struct table t = {.places = calloc(capacity, sizeof(struct slot)), .capacity = capacity};
    if (!t.places)
        return ERR_MEMORY;
    random_bytes(t.seed, sizeof t.seed);
    t.seed[0] |= 1;
    *ret = t;
    return OK;
}

struct customer_set *customer_set_new(void)
{
    struct customer_set *set = calloc(1, sizeof *set);
    if (!set || table_new(PLACES_LEAST, &set->table)) {
        free(set);
        return NULL;
    }
    pthread_rwlockattr_t how;
    pthread_rwlockattr_init(&how);
    /* Otherwise readers that follow each other closely keep the writer out. */
    pthread_rwlockattr_setkind_np(&how, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&set->lock, &how);
    pthread_rwlockattr_destroy(&how);
    return set;
}

void customer_set_free(struct customer_set *set)
{
    if (!set)
        return;
    pthread_rwlock_destroy(&set->lock);
    free(set->table.places);
    free(set);
}

bool customer_set_find(struct customer_set *set, struct customer_id id, int64_t *ret_at_us)
{
    pthread_rwlock_rdlock(&set->lock);
    int64_t at_us = place_of(&set->table, id)->at_us;
    pthread_rwlock_unlock(&set->lock);
    if (at_us)
        *ret_at_us = at_us;
    return at_us != 0;
}

size_t customer_set_count(struct customer_set *set)
{
    pthread_rwlock_rdlock(&set->lock);
    size_t count = set->table.count;
    pthread_rwlock_unlock(&set->lock);
    return count;
}

size_t customer_set_bytes(struct customer_set *set)
{
    pthread_rwlock_rdlock(&set->lock);
    size_t bytes = set->table.capacity * sizeof(struct slot);
    pthread_rwlock_unlock(&set->lock);
    return bytes;
}

static void use(struct customer_set *set, struct table fresh)
{
    struct slot *old = set->table.places;
    pthread_rwlock_wrlock(&set->lock);
    set->table = fresh;
    pthread_rwlock_unlock(&set->lock);
    free(old);
}

/* Filled aside, while readers go on with the old one. */
static enum err resize(struct customer_set *set, size_t capacity)
{
    struct table fresh;
    enum err e = table_new(capacity, &fresh);
    if (e)
        return e;
    for (size_t i = 0; i < set->table.capacity; i++)
        if (set->table.places[i].at_us)
            *place_of(&fresh, set->table.places[i].id) = set->table.places[i];
    fresh.count = set->table.count;
    use(set, fresh);
    return OK;
}

enum err customer_set_put(struct customer_set *set, struct customer_id id, int64_t at_us)
{
    struct table *t = &set->table;
    if (t->count + 1 > t->capacity / 4 * 3) {
        enum err e = resize(set, t->capacity + t->capacity / 2);
        if (e)
            return e;
    }
    struct slot *place = place_of(t, id);
    pthread_rwlock_wrlock(&set->lock);
    t->count += !place->at_us;
    *place = (struct slot){id, at_us ? at_us : 1};
    pthread_rwlock_unlock(&set->lock);
    return OK;
}

/* Those behind a place that becomes free move up, so that no search for them ends there. */
static void close_gap(struct table *t, size_t gap)
{
    for (size_t at = gap;;) {
        at = at + 1 < t->capacity ? at + 1 : 0;
        if (!t->places[at].at_us)
            break;
        size_t home = home_of(t, t->places[at].id);
        size_t from_home = at >= home ? at - home : at + t->capacity - home;
        size_t from_gap = at >= gap ? at - gap : at + t->capacity - gap;
        if (from_home >= from_gap) {
            t->places[gap] = t->places[at];
            gap = at;
        }
    }
    t->places[gap] = (struct slot){{0, 0}, 0};
}

void customer_set_remove(struct customer_set *set, struct customer_id id)
{
    struct table *t = &set->table;
    struct slot *place = place_of(t, id);
    if (!place->at_us)
        return;
    pthread_rwlock_wrlock(&set->lock);
    close_gap(t, (size_t)(place - t->places));
    t->count--;
    pthread_rwlock_unlock(&set->lock);
    if (t->capacity > PLACES_LEAST && t->count < t->capacity / 8)
        (void)!resize(set, t->capacity / 4 > PLACES_LEAST ? t->capacity / 4
                                                          : PLACES_LEAST); /* without memory it stays large */
}

void customer_set_swap(struct customer_set *set, struct customer_set *fresh)
{
    struct table old = set->table;
    pthread_rwlock_wrlock(&set->lock);
    set->table = fresh->table;
    pthread_rwlock_unlock(&set->lock);
    fresh->table = old;
}
