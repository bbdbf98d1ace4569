/* Credentials seen before: whose they are, for a minute, so that knowing a caller again takes no database.
 *
 * Nothing here says whether a customer may pass: that is gate/frozen_customers.h. Bounded; when a set of places is full, the entry
 * that ends soonest makes room. Safe from any thread. */
#ifndef GATE_CREDENTIAL_CACHE_H
#define GATE_CREDENTIAL_CACHE_H

#include "base/digest.h"
#include "gate/customer_set.h"

#define CREDENTIAL_CACHE_ENTRIES 98304
#define CREDENTIAL_CACHE_NS (60 * NS_PER_S)

enum credential_kind {
    CREDENTIAL_TOKEN = 1, /* by the token's digest */
    CREDENTIAL_KEY,       /* by the API key's */
    CREDENTIAL_USER,      /* by that of the user's id */
};

struct cached_credential {
    struct customer_id customer; /* it has one: who has none is asked for anew each time */
    struct customer_id id;       /* the key's, or the user's */
    bool admin;
};

struct credential_cache;

struct credential_cache *credential_cache_new(size_t entries) MUST_CHECK;
void credential_cache_free(struct credential_cache *credentials); /* NULL is fine */

bool credential_cache_find(struct credential_cache *credentials, enum credential_kind kind, const struct digest *by,
                           int64_t now_ns, struct cached_credential *ret);
/* `asked_ns` is when the look-up began that told it: what was forgotten since stays so. Ends CREDENTIAL_CACHE_NS after that, or at
 * `until_ns`, whichever comes first. */
void credential_cache_add(struct credential_cache *credentials, enum credential_kind kind, const struct digest *by,
                          const struct cached_credential *as, int64_t asked_ns, int64_t until_ns);
/* Forgets what leads to these customers, and these keys; both NULL: everything. Once it returns, nobody is told of them any more unless a
 * look-up began after the call. */
void credential_cache_remove(struct credential_cache *credentials, struct customer_set *customers,
                             struct customer_set *keys);

#endif
