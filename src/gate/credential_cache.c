#include "gate/credential_cache.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/expiring_cache.h"

/* cache: credentials */
struct credential_cache {
    struct expiring_cache *cache;
};

struct credential_cache *credential_cache_new(size_t entries)
{
    struct credential_cache *credentials = calloc(1, sizeof *credentials);
    if (credentials && !(credentials->cache = expiring_cache_new(entries, sizeof(struct cached_credential)))) {
        free(credentials);
        credentials = NULL;
    }
    return credentials;
}

void credential_cache_free(struct credential_cache *credentials)
{
    if (!credentials)
        return;
    expiring_cache_free(credentials->cache);
    free(credentials);
}

int64_t credential_cache_find(struct credential_cache *credentials, enum credential_kind kind, const struct digest *by,
                              int64_t now_ns, struct cached_credential *ret)
{
    return expiring_cache_find(credentials->cache, (int)kind, by, now_ns, ret);
}

void credential_cache_add(struct credential_cache *credentials, enum credential_kind kind, const struct digest *by,
                          const struct cached_credential *as, int64_t asked_ns, int64_t until_ns)
{
    int64_t most_ns = asked_ns + CREDENTIAL_CACHE_NS;
    expiring_cache_put(credentials->cache, (int)kind, by, as, asked_ns, until_ns < most_ns ? until_ns : most_ns);
}

/* NULL for those that are empty: nearly always all but one are, and there are many entries to look at. */
struct removed {
    struct customer_set *ended[ENDED_KINDS];
};

static bool is_in(struct customer_set *set, struct customer_id id)
{
    return set && customer_set_has(set, id);
}

static bool is_removed(void *context, int kind, const void *value)
{
    const struct removed *removed = context;
    const struct cached_credential *as = value;
    bool is_key = kind == CREDENTIAL_KEY;
    return is_in(removed->ended[ENDED_CUSTOMER], as->customer) ||
           is_in(removed->ended[is_key ? ENDED_KEY : ENDED_USER], as->id) ||
           (kind == CREDENTIAL_TOKEN && is_in(removed->ended[ENDED_SESSION], as->session));
}

void credential_cache_remove(struct credential_cache *credentials, struct customer_set *const ended[ENDED_KINDS])
{
    struct removed removed = {{NULL}};
    for (int kind = 0; ended && kind < ENDED_KINDS; kind++)
        if (customer_set_count(ended[kind]))
            removed.ended[kind] = ended[kind];
    expiring_cache_remove_where(credentials->cache, ended ? is_removed : NULL, &removed);
}
