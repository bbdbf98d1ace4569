/* A bounded cache of values with an expiry time, keyed by a digest and a kind.
 *
 * It is set-associative; when a set is full, the entry that expires first is evicted. Any thread may use it. */
#ifndef BASE_EXPIRING_CACHE_H
#define BASE_EXPIRING_CACHE_H

#include "base/digest.h"

struct expiring_cache;

/* Values are copied in and out; `value_size` bytes each. */
struct expiring_cache *expiring_cache_new(size_t entries, size_t value_size) MUST_CHECK;
void expiring_cache_free(struct expiring_cache *cache); /* NULL is allowed */

/* Returns when the entry expires and copies its value; 0 when there is none that expires after `now_ns`. */
int64_t expiring_cache_find(struct expiring_cache *cache, int kind, const struct digest *key, int64_t now_ns,
                            void *ret_value);
/* `asked_ns` is when the look-up that returned the value began: entries removed since then are not put back. */
void expiring_cache_put(struct expiring_cache *cache, int kind, const struct digest *key, const void *value,
                        int64_t asked_ns, int64_t until_ns);
/* Once it returns, the entry is removed, and a look-up that began earlier does not put it back. */
void expiring_cache_remove(struct expiring_cache *cache, int kind, const struct digest *key);
/* The same for every entry that `chosen` is true for; NULL: for all. */
void expiring_cache_remove_where(struct expiring_cache *cache,
                                 bool (*chosen)(void *context, int kind, const void *value), void *context);

#endif
