#include "http/networks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

struct place {
    struct ip network;
    int count; /* 0: free */
};

/* Open addressing with linear probing; at most half of the places are taken. */
struct networks {
    pthread_mutex_t lock;
    uint64_t seed; /* clients cannot choose networks that fall on the same place */
    size_t mask, taken;
    struct place *places;
};

struct networks *networks_new(size_t most)
{
    size_t size = 64;
    while (size < 2 * most)
        size *= 2;
    struct networks *n = calloc(1, sizeof *n);
    struct place *places = n ? calloc(size, sizeof *places) : NULL;
    if (!places) {
        free(n);
        return NULL;
    }
    pthread_mutex_init(&n->lock, NULL);
    random_bytes(&n->seed, sizeof n->seed);
    n->mask = size - 1;
    n->places = places;
    return n;
}

void networks_free(struct networks *n)
{
    if (!n)
        return;
    pthread_mutex_destroy(&n->lock);
    free(n->places);
    free(n);
}

static size_t home_of(const struct networks *n, const struct ip *network)
{
    uint64_t half[2];
    memcpy(half, network->bytes, sizeof half);
    uint64_t hash = (half[0] ^ n->seed) * 0x9e3779b97f4a7c15U;
    hash = (hash ^ (hash >> 32) ^ half[1]) * 0xbf58476d1ce4e5b9U;
    return (size_t)(hash ^ (hash >> 29)) & n->mask;
}

/* The network's place, or the free one where it would be. */
static size_t find(const struct networks *n, const struct ip *network)
{
    size_t at = home_of(n, network);
    while (n->places[at].count && memcmp(&n->places[at].network, network, sizeof *network) != 0)
        at = (at + 1) & n->mask;
    return at;
}

int networks_count(struct networks *n, const struct ip *client)
{
    struct ip network = ip_network(client);
    pthread_mutex_lock(&n->lock);
    int count = n->places[find(n, &network)].count;
    pthread_mutex_unlock(&n->lock);
    return count;
}

bool networks_add(struct networks *n, const struct ip *client)
{
    struct ip network = ip_network(client);
    pthread_mutex_lock(&n->lock);
    struct place *place = &n->places[find(n, &network)];
    bool fits = place->count || n->taken < (n->mask + 1) / 2;
    if (fits) {
        n->taken += place->count == 0;
        place->network = network;
        place->count++;
    }
    pthread_mutex_unlock(&n->lock);
    return fits;
}

/* Moves up those behind a freed place that would not be found any more. */
static void close_gap(struct networks *n, size_t gap)
{
    for (size_t at = (gap + 1) & n->mask; n->places[at].count; at = (at + 1) & n->mask) {
        size_t home = home_of(n, &n->places[at].network);
        if (((at - home) & n->mask) < ((at - gap) & n->mask))
            continue;
        n->places[gap] = n->places[at];
        gap = at;
    }
    n->places[gap].count = 0;
}

void networks_remove(struct networks *n, const struct ip *client)
{
    struct ip network = ip_network(client);
    pthread_mutex_lock(&n->lock);
    size_t at = find(n, &network);
    if (n->places[at].count && --n->places[at].count == 0) {
        n->taken--;
        close_gap(n, at);
    }
    pthread_mutex_unlock(&n->lock);
}
