#include "credentials/key_ring.h"

#include <pthread.h>
#include <stdlib.h>

#include "credentials/jwt_keys.h"

struct key_ring {
    pthread_mutex_t lock;
    struct jwt_keys *now;
};

struct key_ring *key_ring_new(void)
{
    struct key_ring *ring = calloc(1, sizeof *ring);
    if (ring)
        pthread_mutex_init(&ring->lock, NULL);
    return ring;
}

void key_ring_free(struct key_ring *ring)
{
    if (!ring)
        return;
    jwt_keys_free(ring->now);
    pthread_mutex_destroy(&ring->lock);
    free(ring);
}

void key_ring_put(struct key_ring *ring, struct jwt_keys *keys)
{
    pthread_mutex_lock(&ring->lock);
    struct jwt_keys *old = ring->now;
    ring->now = keys;
    bool unused = old && old->users == 0;
    pthread_mutex_unlock(&ring->lock);
    if (unused)
        jwt_keys_free(old);
}

const struct jwt_keys *key_ring_take(struct key_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    struct jwt_keys *keys = ring->now;
    if (keys)
        keys->users++;
    pthread_mutex_unlock(&ring->lock);
    return keys;
}

void key_ring_give(struct key_ring *ring, const struct jwt_keys *keys)
{
    struct jwt_keys *taken = (struct jwt_keys *)keys;
    if (!taken)
        return;
    pthread_mutex_lock(&ring->lock);
    bool last = --taken->users == 0 && taken != ring->now;
    pthread_mutex_unlock(&ring->lock);
    if (last)
        jwt_keys_free(taken);
}
