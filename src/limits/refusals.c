#include "limits/refusals.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/expiring_cache.h"

/* cache: refusals */
struct refusals {
    struct expiring_cache *cache;
};

struct cached_refusal {
    struct limit limit;
    int64_t uncertainty_ns;
};

struct refusals *refusals_new(size_t entries)
{
    struct refusals *r = calloc(1, sizeof *r);
    if (r && !(r->cache = expiring_cache_new(entries, sizeof(struct cached_refusal)))) {
        free(r);
        r = NULL;
    }
    return r;
}

void refusals_free(struct refusals *r)
{
    if (!r)
        return;
    expiring_cache_free(r->cache);
    free(r);
}

/* The caller decides whether a removed refusal may be added again, so the cache need not compare times. */
void refusals_add(struct refusals *r, const struct counted *c, const struct limit *limit, int64_t until_ns,
                  int64_t uncertainty_ns)
{
    struct cached_refusal refusal = {*limit, uncertainty_ns};
    expiring_cache_put(r->cache, (int)c->tier, &c->subject, &refusal, INT64_MAX, until_ns);
}

static int64_t find(struct refusals *r, const struct counted *c, const struct limit *limit, int64_t now_ns,
                    struct cached_refusal *ret)
{
    int64_t until_ns = expiring_cache_find(r->cache, (int)c->tier, &c->subject, now_ns, ret);
    bool same_limit = until_ns && ret->limit.requests == limit->requests && ret->limit.seconds == limit->seconds;
    return same_limit ? until_ns : 0;
}

int64_t refusals_until(struct refusals *r, const struct counted *c, const struct limit *limit, int64_t now_ns)
{
    struct cached_refusal refusal;
    return find(r, c, limit, now_ns, &refusal);
}

int64_t refusals_wait(struct refusals *r, const struct counted *c, const struct limit *limit, int64_t now_ns)
{
    struct cached_refusal refusal;
    int64_t until_ns = find(r, c, limit, now_ns, &refusal);
    if (!until_ns)
        return 0;
    /* Another thread may have added it after now_ns was read; the reply is sent later, so one window is enough. */
    int64_t wait_ns = until_ns + refusal.uncertainty_ns - now_ns, window_ns = limit->seconds * NS_PER_S;
    return wait_ns < window_ns ? wait_ns : window_ns;
}

void refusals_remove(struct refusals *r, const struct counted *c)
{
    if (c)
        expiring_cache_remove(r->cache, (int)c->tier, &c->subject);
    else
        expiring_cache_remove_where(r->cache, NULL, NULL);
}
