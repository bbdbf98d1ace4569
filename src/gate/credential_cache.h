/* Caches which customer a credential belongs to, for a minute.
 *
 * It does not hold the customer's status: see gate/frozen_customers.h. Bounded; when a set is full, the entry that
 * expires first is evicted. Any thread may use it. */
#ifndef GATE_CREDENTIAL_CACHE_H
#define GATE_CREDENTIAL_CACHE_H

#include "base/digest.h"
#include "gate/customer_set.h"

#define CREDENTIAL_CACHE_ENTRIES 98304
#define CREDENTIAL_CACHE_NS (60 * NS_PER_S)

enum credential_kind {
    CREDENTIAL_TOKEN = 1, /* by the digest of the token */
    CREDENTIAL_KEY,       /* of the API key */
    CREDENTIAL_USER,      /* of the user's id */
};

struct cached_credential {
    struct customer_id customer; /* credentials without a customer are not cached */
    struct customer_id id;       /* of the key, or of the user */
    bool admin;
};

struct credential_cache;

struct credential_cache *credential_cache_new(size_t entries) MUST_CHECK;
void credential_cache_free(struct credential_cache *credentials); /* NULL is fine */

bool credential_cache_find(struct credential_cache *credentials, enum credential_kind kind, const struct digest *by,
                           int64_t now_ns, struct cached_credential *ret);
/* `asked_ns` is when the look-up began: entries removed since then are not put back. Expires CREDENTIAL_CACHE_NS after
 * that, or at `until_ns`, whichever comes first. */
void credential_cache_add(struct credential_cache *credentials, enum credential_kind kind, const struct digest *by,
                          const struct cached_credential *as, int64_t asked_ns, int64_t until_ns);
/* Removes the entries of these customers and keys; both NULL: all entries. Once it returns, only look-ups begun
 * after the call can add them again. */
void credential_cache_remove(struct credential_cache *credentials, struct customer_set *customers,
                             struct customer_set *keys);

#endif
