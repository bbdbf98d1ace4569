/* A bounded cache of values that end at an instant, found by a digest and a kind.
 *
 * Entries lie in sets of a few; when a set is full, the entry that ends soonest is replaced. Any thread may use it. */
#ifndef BASE_EXPIRING_CACHE_H
#define BASE_EXPIRING_CACHE_H

#include "base/digest.h"

struct expiring_cache;

/* Values are copied in and out; `value_size` bytes each. */
struct expiring_cache *expiring_cache_new(size_t entries, size_t value_size) MUST_CHECK;
void expiring_cache_free(struct expiring_cache *cache); /* NULL is fine */

/* Until when it is valid, and its value; 0 when there is none that ends after `now_ns`. */
int64_t expiring_cache_find(struct expiring_cache *cache, int kind, const struct digest *key, int64_t now_ns,
                            void *ret_value);
/* `asked_ns` is when the look-up began that brought the value: entries removed since then are not put back. */
void expiring_cache_put(struct expiring_cache *cache, int kind, const struct digest *key, const void *value,
                        int64_t asked_ns, int64_t until_ns);
/* When it returns, the entry is gone, and no look-up that began before puts it back. */
void expiring_cache_remove(struct expiring_cache *cache, int kind, const struct digest *key);
/* The same for every entry that `chosen` is true for; NULL: for all. */
void expiring_cache_remove_where(struct expiring_cache *cache,
                                 bool (*chosen)(void *context, int kind, const void *value), void *context);

#endif
