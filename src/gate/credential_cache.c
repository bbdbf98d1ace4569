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

bool credential_cache_find(struct credential_cache *credentials, enum credential_kind kind, const struct digest *by,
                           int64_t now_ns, struct cached_credential *ret)
{
    return expiring_cache_find(credentials->cache, (int)kind, by, now_ns, ret) != 0;
}

void credential_cache_add(struct credential_cache *credentials, enum credential_kind kind, const struct digest *by,
                          const struct cached_credential *as, int64_t asked_ns, int64_t until_ns)
{
    int64_t most_ns = asked_ns + CREDENTIAL_CACHE_NS;
    expiring_cache_put(credentials->cache, (int)kind, by, as, asked_ns, until_ns < most_ns ? until_ns : most_ns);
}

struct removed {
    struct customer_set *customers, *keys;
};

static bool is_removed(void *context, int kind, const void *value)
{
    const struct removed *removed = context;
    const struct cached_credential *as = value;
    int64_t ignored;
    return customer_set_find(removed->customers, as->customer, &ignored) ||
           (kind == CREDENTIAL_KEY && customer_set_find(removed->keys, as->id, &ignored));
}

void credential_cache_remove(struct credential_cache *credentials, struct customer_set *customers,
                             struct customer_set *keys)
{
    struct removed removed = {customers, keys};
    expiring_cache_remove_where(credentials->cache, customers ? is_removed : NULL, &removed);
}
