#include "gate/customer_set.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/digest.h"
#include "base/random.h"

#define CAPACITY_MIN 64

struct slot {
    struct customer_id id;
    struct freeze freeze; /* scheduled_us 0: free */
};
_Static_assert(sizeof(struct slot) == 32, "two slots a cache line");

/* Open addressing with linear probing. A table that is three quarters full grows by a third, and is then 9/16 full. */
struct table {
    struct slot *slots;
    size_t capacity, count;
    uint64_t seed[2]; /* random: ids cannot be chosen so that they collide */
};

struct customer_set {
    pthread_rwlock_t lock; /* held for writing, and by readers; the writer reads without it */
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

/* The customer's slot, or the free one to put it into. There is always a free slot. */
static struct slot *find_slot(const struct table *t, struct customer_id id)
{
    size_t at = home_of(t, id);
    while (t->slots[at].freeze.scheduled_us && !same(t->slots[at].id, id))
        at = at + 1 < t->capacity ? at + 1 : 0;
    return &t->slots[at];
}

static enum err table_new(size_t capacity, struct table *ret)
{
    struct table t = {.slots = calloc(capacity, sizeof(struct slot)), .capacity = capacity};
    if (!t.slots)
        return ERR_MEMORY;
    random_bytes(t.seed, sizeof t.seed);
    t.seed[0] |= 1;
    *ret = t;
    return OK;
}

struct customer_set *customer_set_new(void)
{
    struct customer_set *set = calloc(1, sizeof *set);
    if (!set || table_new(CAPACITY_MIN, &set->table)) {
        free(set);
        return NULL;
    }
    pthread_rwlockattr_t how;
    pthread_rwlockattr_init(&how);
    /* Otherwise overlapping readers starve the writer. */
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
    free(set->table.slots);
    free(set);
}

bool customer_set_find(struct customer_set *set, struct customer_id id, struct freeze *ret)
{
    pthread_rwlock_rdlock(&set->lock);
    struct freeze freeze = find_slot(&set->table, id)->freeze;
    pthread_rwlock_unlock(&set->lock);
    if (freeze.scheduled_us)
        *ret = freeze;
    return freeze.scheduled_us != 0;
}

bool customer_set_has(struct customer_set *set, struct customer_id id)
{
    struct freeze ignored;
    return customer_set_find(set, id, &ignored);
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

static void install_table(struct customer_set *set, struct table fresh)
{
    struct slot *old = set->table.slots;
    pthread_rwlock_wrlock(&set->lock);
    set->table = fresh;
    pthread_rwlock_unlock(&set->lock);
    free(old);
}

/* Fills the new table without the lock, while readers use the old one. */
static enum err resize(struct customer_set *set, size_t capacity)
{
    struct table fresh;
    enum err e = table_new(capacity, &fresh);
    if (e)
        return e;
    for (size_t i = 0; i < set->table.capacity; i++)
        if (set->table.slots[i].freeze.scheduled_us)
            *find_slot(&fresh, set->table.slots[i].id) = set->table.slots[i];
    fresh.count = set->table.count;
    install_table(set, fresh);
    return OK;
}

enum err customer_set_put(struct customer_set *set, struct customer_id id, struct freeze freeze)
{
    struct table *t = &set->table;
    if (t->count + 1 > t->capacity / 4 * 3) {
        enum err e = resize(set, t->capacity + t->capacity / 3);
        if (e)
            return e;
    }
    struct slot *slot = find_slot(t, id);
    pthread_rwlock_wrlock(&set->lock);
    t->count += !slot->freeze.scheduled_us;
    *slot = (struct slot){id, freeze};
    slot->freeze.scheduled_us += !freeze.scheduled_us;
    pthread_rwlock_unlock(&set->lock);
    return OK;
}

enum err customer_set_add(struct customer_set *set, struct customer_id id)
{
    return customer_set_put(set, id, (struct freeze){.scheduled_us = 1});
}

/* Moves later entries of the probe sequence up, so that no search for them ends at the freed slot. */
static void close_gap(struct table *t, size_t gap)
{
    for (size_t at = gap;;) {
        at = at + 1 < t->capacity ? at + 1 : 0;
        if (!t->slots[at].freeze.scheduled_us)
            break;
        size_t home = home_of(t, t->slots[at].id);
        size_t from_home = at >= home ? at - home : at + t->capacity - home;
        size_t from_gap = at >= gap ? at - gap : at + t->capacity - gap;
        if (from_home >= from_gap) {
            t->slots[gap] = t->slots[at];
            gap = at;
        }
    }
    t->slots[gap] = (struct slot){.id = {0, 0}};
}

void customer_set_remove(struct customer_set *set, struct customer_id id)
{
    struct table *t = &set->table;
    struct slot *slot = find_slot(t, id);
    if (!slot->freeze.scheduled_us)
        return;
    pthread_rwlock_wrlock(&set->lock);
    close_gap(t, (size_t)(slot - t->slots));
    t->count--;
    pthread_rwlock_unlock(&set->lock);
    if (t->capacity > CAPACITY_MIN && t->count < t->capacity / 8)
        (void)!resize(set, t->capacity / 4 > CAPACITY_MIN ? t->capacity / 4
                                                          : CAPACITY_MIN); /* on ERR_MEMORY it keeps its size */
}

void customer_set_swap(struct customer_set *set, struct customer_set *fresh)
{
    struct table old = set->table;
    pthread_rwlock_wrlock(&set->lock);
    set->table = fresh->table;
    pthread_rwlock_unlock(&set->lock);
    fresh->table = old;
}
