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
    CREDENTIAL_TOKEN = 1, /* by the digest of the token, and of the customer that the request chose */
    CREDENTIAL_KEY,       /* of the API key */
    CREDENTIAL_USER,      /* of the user's id, and of the customer that the request chose */
};

struct cached_credential {
    struct customer_id customer; /* 0 for keys with a scope; other credentials without a customer are not cached */
    struct customer_id id;       /* of the key, or of the user */
    struct customer_id session;  /* of a token; 0: none */
    bool admin;
    bool is_owner, has_several; /* see struct caller */
    uint8_t scope;              /* enum key_scope; of a key */
};

/* What can end; each kind is a set of ids. */
enum ended_kind { ENDED_CUSTOMER, ENDED_KEY, ENDED_USER, ENDED_SESSION, ENDED_KINDS };

struct credential_cache;

struct credential_cache *credential_cache_new(size_t entries) MUST_CHECK;
void credential_cache_free(struct credential_cache *credentials); /* NULL is fine */

/* When the entry expires; 0: there is none. */
int64_t credential_cache_find(struct credential_cache *credentials, enum credential_kind kind, const struct digest *by,
                              int64_t now_ns, struct cached_credential *ret);
/* `asked_ns` is when the look-up began: entries removed since then are not put back. Expires CREDENTIAL_CACHE_NS after
 * that, or at `until_ns`, whichever comes first. */
void credential_cache_add(struct credential_cache *credentials, enum credential_kind kind, const struct digest *by,
                          const struct cached_credential *as, int64_t asked_ns, int64_t until_ns);
/* Removes the entries of these customers, keys, users and sessions; NULL instead of the array: all entries. Once it
 * returns, only look-ups begun after the call can add them again. */
void credential_cache_remove(struct credential_cache *credentials, struct customer_set *const ended[ENDED_KINDS]);

#endif
