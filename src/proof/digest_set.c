#include "proof/digest_set.h"

#include <stdlib.h>
#include <string.h>

static const struct digest free_slot;

/* Digests are evenly distributed: the first bytes of one choose its slot. */
static struct digest *find(const struct digest_set *set, const struct digest *d)
{
    uint64_t at;
    memcpy(&at, d->bytes, sizeof at);
    for (;; at++) {
        struct digest *slot = &set->slots[at & (set->room - 1)];
        if (memcmp(slot, d, sizeof *d) == 0 || memcmp(slot, &free_slot, sizeof *slot) == 0)
            return slot;
    }
}

static enum err grow(struct digest_set *set)
{
    struct digest_set larger = {.room = set->room ? 2 * set->room : 1024, .count = set->count};
    larger.slots = calloc(larger.room, sizeof *larger.slots);
    if (!larger.slots)
        return ERR_MEMORY;
    for (size_t i = 0; i < set->room; i++)
        if (memcmp(&set->slots[i], &free_slot, sizeof free_slot) != 0)
            *find(&larger, &set->slots[i]) = set->slots[i];
    free(set->slots);
    *set = larger;
    return OK;
}

enum err digest_set_add(struct digest_set *set, const struct digest *d)
{
    if (2 * (set->count + 1) > set->room) {
        enum err e = grow(set);
        if (e)
            return e;
    }
    struct digest *slot = find(set, d);
    if (memcmp(slot, d, sizeof *d) != 0) {
        *slot = *d;
        set->count++;
    }
    return OK;
}

bool digest_set_has(const struct digest_set *set, const struct digest *d)
{
    return set->room && memcmp(find(set, d), d, sizeof *d) == 0;
}

void digest_set_cleanup(struct digest_set *set)
{
    free(set->slots);
    *set = (struct digest_set){0};
}
