/* Credentials seen before: whose they are, for a minute, so that knowing a caller again takes no database.
 *
 * Nothing here says whether a customer may pass: that is auth/frozen.h. Bounded; when a set of places is full, the entry
 * that ends soonest makes room. Safe from any thread. */
#ifndef AUTH_SEEN_H
#define AUTH_SEEN_H

#include "auth/customer_set.h"
#include "base/digest.h"

#define SEEN_ENTRIES 98304
#define SEEN_NS (60 * NS_PER_S)

enum seen_kind {
    SEEN_TOKEN = 1, /* by the token's digest */
    SEEN_KEY,       /* by the API key's */
    SEEN_USER,      /* by that of the user's id */
};

struct seen_as {
    struct customer_id customer; /* it has one: who has none is asked for anew each time */
    struct customer_id id;       /* the key's, or the user's */
    bool admin;
};

struct seen;

struct seen *seen_new(size_t entries) MUST_CHECK;
void seen_free(struct seen *seen); /* NULL is fine */

bool seen_find(struct seen *seen, enum seen_kind kind, const struct digest *by, int64_t now_ns, struct seen_as *ret);
/* `asked_ns` is when the look-up began that told it: what was forgotten since stays so. Ends SEEN_NS after that, or at
 * `until_ns`, whichever comes first. */
void seen_learn(struct seen *seen, enum seen_kind kind, const struct digest *by, const struct seen_as *as,
                int64_t asked_ns, int64_t until_ns);
/* Forgets what leads to these customers, and these keys; both NULL: everything. Once it returns, nobody is told of them any more unless a
 * look-up began after the call. */
void seen_forget(struct seen *seen, struct customer_set *customers, struct customer_set *keys);

#endif
