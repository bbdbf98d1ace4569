#include "limits/refusals.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define WAYS 4
#define STRIPES 64

struct refusal {
    uint8_t subject[16]; /* half a digest tells subjects apart */
    int64_t until_ns;    /* 0: free */
    int64_t doubt_ns;
    int32_t requests, seconds;
    enum tier tier;
};

/* cache: refusals */
struct refusals {
    size_t sets; /* of WAYS entries; a power of two */
    pthread_mutex_t stripes[STRIPES];
    struct refusal entries[];
};

struct refusals *refusals_new(size_t entries)
{
    size_t sets = STRIPES;
    while (sets * WAYS < entries)
        sets *= 2;
    struct refusals *r = calloc(1, sizeof *r + sets * WAYS * sizeof r->entries[0]);
    if (!r)
        return NULL;
    r->sets = sets;
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_init(&r->stripes[i], NULL);
    return r;
}

void refusals_free(struct refusals *r)
{
    if (!r)
        return;
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_destroy(&r->stripes[i]);
    free(r);
}

static size_t set_of(const struct refusals *r, const struct counted *c)
{
    size_t hash;
    memcpy(&hash, c->subject.bytes + 16, sizeof hash);
    return (hash + (size_t)c->tier * 0x9e3779b97f4a7c15u) & (r->sets - 1);
}

static bool is_of(const struct refusal *e, const struct counted *c, const struct limit *limit)
{
    return e->until_ns && e->tier == c->tier && memcmp(e->subject, c->subject.bytes, sizeof e->subject) == 0 &&
           (!limit || (e->requests == limit->requests && e->seconds == limit->seconds));
}

void refusals_learn(struct refusals *r, const struct counted *c, const struct limit *limit, int64_t until_ns,
                    int64_t doubt_ns)
{
    size_t set = set_of(r, c);
    struct refusal *ways = &r->entries[set * WAYS], *place = &ways[0];
    pthread_mutex_lock(&r->stripes[set % STRIPES]);
    for (int i = 0; i < WAYS; i++) {
        if (is_of(&ways[i], c, limit)) {
            place = &ways[i];
            break;
        }
        if (ways[i].until_ns < place->until_ns)
            place = &ways[i];
    }
    *place = (struct refusal){.until_ns = until_ns,
                              .doubt_ns = doubt_ns,
                              .requests = (int32_t)limit->requests,
                              .seconds = (int32_t)limit->seconds,
                              .tier = c->tier};
    memcpy(place->subject, c->subject.bytes, sizeof place->subject);
    pthread_mutex_unlock(&r->stripes[set % STRIPES]);
}

static struct refusal find(struct refusals *r, const struct counted *c, const struct limit *limit, int64_t now_ns)
{
    size_t set = set_of(r, c);
    struct refusal found = {.until_ns = 0};
    pthread_mutex_lock(&r->stripes[set % STRIPES]);
    for (size_t i = set * WAYS; i < (set + 1) * WAYS; i++)
        if (is_of(&r->entries[i], c, limit) && r->entries[i].until_ns > now_ns)
            found = r->entries[i];
    pthread_mutex_unlock(&r->stripes[set % STRIPES]);
    return found;
}

int64_t refusals_until(struct refusals *r, const struct counted *c, const struct limit *limit, int64_t now_ns)
{
    return find(r, c, limit, now_ns).until_ns;
}

int64_t refusals_wait(struct refusals *r, const struct counted *c, const struct limit *limit, int64_t now_ns)
{
    struct refusal e = find(r, c, limit, now_ns);
    if (!e.until_ns)
        return 0;
    /* Another thread may have learnt it since the clock was read: the answer leaves later still, so a window suffices. */
    int64_t wait_ns = e.until_ns + e.doubt_ns - now_ns, window_ns = limit->seconds * NS_PER_S;
    return wait_ns < window_ns ? wait_ns : window_ns;
}

static void forget_in(struct refusals *r, size_t set, const struct counted *c)
{
    pthread_mutex_lock(&r->stripes[set % STRIPES]);
    for (int i = 0; i < WAYS; i++)
        if (!c || is_of(&r->entries[set * WAYS + (size_t)i], c, NULL))
            r->entries[set * WAYS + (size_t)i].until_ns = 0;
    pthread_mutex_unlock(&r->stripes[set % STRIPES]);
}

void refusals_forget(struct refusals *r, const struct counted *c)
{
    if (c)
        forget_in(r, set_of(r, c), c);
    for (size_t set = 0; !c && set < r->sets; set++)
        forget_in(r, set, NULL);
}
